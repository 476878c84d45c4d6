import { type Context, type Plugin } from 'koishi'
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { before, test } from 'node:test'
import ts from 'typescript'
import type * as source from '../../src'
import { temporaryFolder } from '../support/folder'
import { startRelay } from '../support/relay'
import { until } from '../support/until'
import { post, texts } from '../integration/hooks/support'
import { record } from './support/json'
import { marked, repository, versions } from './support/pages'

const name = 'koishi-plugin-message-relay'
// In it nothing can be imported but Koishi, the package and what the package depends on.
const folder = realpathSync(temporaryFolder())

function run(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  return stdout
}

before(async () => {
  run(process.execPath, ['scripts/declarations.mjs'], repository)
  // It is built already. To build it again would pull it from under tests that run beside this one.
  const file = run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder], repository).trim()
  const installed = join(folder, 'node_modules', name)
  await mkdir(installed, { recursive: true })
  run('tar', ['-xzf', join(folder, file), '--strip-components=1', '-C', installed], folder)
  const { dependencies, peerDependencies } = record(createRequire(__filename)('../../package.json'))
  for (const each of Object.keys({ ...record(dependencies), ...record(peerDependencies) })) {
    await symlink(join(repository, 'node_modules', each), join(folder, 'node_modules', each))
  }
})

/** Compiles plugins against the types of the package, all at once, because reading the types takes long, and loads them. */
async function load(plugins: readonly { name: string, text: string }[]): Promise<Plugin.Object<Context>[]> {
  const paths = plugins.map(({ name }) => join(folder, `${name}.ts`))
  for (const [index, { text }] of plugins.entries()) await writeFile(paths[index] ?? '', text)
  const program = ts.createProgram(paths, {
    strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: true, types: [],
    target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext,
  })
  const messages = ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
  assert.deepEqual(messages, [])
  program.emit()
  return plugins.map(({ name }) => {
    const loaded: unknown = createRequire(join(folder, 'app.js'))(`./${name}.js`)
    assert(isPlugin(loaded))
    return loaded
  })
}

function isPlugin(value: unknown): value is Plugin.Object<Context> {
  return typeof value === 'object' && value !== null && 'apply' in value && typeof value.apply === 'function'
}

function isRelay(value: unknown): value is typeof source {
  return isPlugin(value) && 'Config' in value
}

test('the plugin on each version of the page compiles and runs with the packed package', async () => {
  const plugin: unknown = createRequire(join(folder, 'app.js'))(name)
  assert(isRelay(plugin))
  for (const shop of await load(versions('plugins').map(page => ({ name: page.path.replace(/\W/g, '-'), text: marked(page, 'plugin') })))) {
    const relay = await startRelay({ plugin, config: { targets: { ops: 'group:123456' } } })
    try {
      relay.app.plugin(shop)
      await until('its message has arrived', () => texts(relay).length === 1)
      assert.match(texts(relay)[0] ?? '', /The shop is open|开始营业/)
      assert.equal((await post(relay, 'shop/ops', { id: 7, state: 'open' })).status, 200)
      await post(relay, 'shop/ops', { id: 8, state: 'paid' })
      await until('its order has arrived', () => texts(relay).length === 2)
      assert.match(texts(relay)[1] ?? '', /^(?:Order 8 is paid|订单 8 已付款)$/)
    } finally {
      await relay.stop()
    }
  }
})
