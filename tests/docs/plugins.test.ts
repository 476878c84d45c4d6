import { transform } from 'esbuild'
import { type Context, type Plugin } from 'koishi'
import assert from 'node:assert/strict'
import { symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { temporaryFolder } from '../support/folder'
import { relayFor } from '../support/relay'
import { until } from '../support/until'
import { post, texts } from '../integration/hooks/support'
import { marked, repository, versions } from './support/pages'

const folder = temporaryFolder()

before(() => symlink(join(repository, 'node_modules'), join(folder, 'node_modules')))

function isPlugin(value: unknown): value is Plugin.Object<Context> {
  return typeof value === 'object' && value !== null && 'apply' in value && typeof value.apply === 'function'
}

// That it compiles with the packed package is for `npm run check:package`.
for (const page of versions('plugins')) {
  test(`the plugin of the page runs: ${page.path}`, async t => {
    const file = join(folder, `${page.path.replace(/\W/g, '-')}.js`)
    await writeFile(file, (await transform(marked(page, 'plugin'), { loader: 'ts', format: 'cjs' })).code)
    const shop: unknown = createRequire(file)(file)
    assert(isPlugin(shop))
    const relay = await relayFor(t, { config: { targets: { ops: 'group:123456' } } })
    relay.app.plugin(shop)
    await until('its message has arrived', () => texts(relay).length === 1)
    assert.match(texts(relay)[0] ?? '', /The shop is open|开始营业/)
    assert.equal((await post(relay, 'shop/ops', { id: 7, state: 'open' })).status, 200)
    await post(relay, 'shop/ops', { id: 8, state: 'paid' })
    await until('its order has arrived', () => texts(relay).length === 2)
    assert.match(texts(relay)[1] ?? '', /^(?:Order 8 is paid|订单 8 已付款)$/)
  })
}
