import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { sourcesOf } from '../../client/sources'
import { chinese, english } from '../../client/texts/all'
import { Simulator, type SimulatorOptions } from '../../simulator'
import { temporaryFolder } from '../support/folder'
import { end, freePort } from '../support/process'
import { until } from '../support/until'
import { record } from './support/json'
import { code, marked, pageAt, repository, table, versions } from './support/pages'
import { clean, collect, online, paste, Workplace } from './support/reader'

/** A platform that wants a token; it ends with the test. */
async function platform(t: TestContext, options: SimulatorOptions): Promise<Simulator> {
  const simulator = await Simulator.start(options)
  t.after(() => simulator.close())
  return simulator
}

async function workplace(t: TestContext): Promise<Workplace> {
  const place = await Workplace.open()
  t.after(() => place.close())
  return place
}

test('the ten minutes lead to a message and to an alert in the group, and a stop answers what is under way', { timeout: 60_000 }, async t => {
  const page = pageAt('docs/start.md')
  const simulator = await platform(t, { token: 'the-token-of-onebot' })
  const bot = await KoishiBot.install()
  t.after(() => bot.remove())
  const [config = ''] = page.blocks.filter(({ language }) => language === 'yaml').map(({ text }) => text)
  await writeFile(join(bot.folder, 'koishi.yml'), config.replace('5140', String(bot.port)).replace('ws://127.0.0.1:3001', simulator.endpoint))
  const log = bot.start()
  await online(log)

  const master = (await readFile(join(bot.folder, 'data/api-key'), 'utf8')).trim()
  /** Makes a key for the group, as the page does. */
  const makeKey = async (key: { name: string, allow: string[], signs?: true }): Promise<Record<string, unknown>> => {
    const body = JSON.stringify({ ...key, targets: ['group:123456'] })
    const response = await fetch(`http://127.0.0.1:${bot.port}/keys`, { method: 'POST', headers: { 'x-api-key': master }, body })
    return record(record(await response.json()).data)
  }
  const { key } = await makeKey({ name: 'curl', allow: ['send'] })
  const firstMessage = marked(page, 'first-message').replace('<key>', String(key))
  assert.match(await paste(firstMessage, bot), /^\{"code":0,/)

  const { secret } = await makeKey({ name: 'github', allow: ['hooks'], signs: true })
  const url = code(table(page, /^Field$/)[0]?.[1])?.replace('https://relay.example.com', `http://127.0.0.1:${bot.port}`) ?? ''
  for (const name of ['workflow_run-cancelled', 'workflow_run-failure']) assert.equal((await fetch(url, await fromGitHub(name, String(secret)))).status, 200)
  await simulator.until(({ ledger }) => ledger.length > 1)
  assert.deepEqual(simulator.ledger.map(({ target }) => target.id), ['123456', '123456'])
  assert.match(simulator.ledger[1]?.text ?? '', /CI/)

  simulator.fault({ fault: { kind: 'late', ms: 2_000, delivered: 'now' } })
  const last = paste(firstMessage, bot)
  await simulator.until(({ ledger }) => ledger.length > 2)
  await bot.stop()
  assert.match(await last, /^\{"code":0,/)
})

for (const [at, page] of versions('start').entries()) {
  const texts = at === 0 ? english : chinese

  test(`the ten minutes name what the page of the console shows: ${page.path}`, () => {
    const { integrations: t } = texts
    const setups = sourcesOf([]).flatMap(({ label }) => [label, t.setup(label)])
    const onTab = [...Object.values(t).map(String), ...Object.values(t.results)]
    const shown = new Set([...setups, texts.title, ...Object.values(texts.tabs), ...onTab])
    const named = [...page.prose.matchAll(/\*\*([^*]+)\*\*/g)].map(([, label = '']) => label.replace('\n', ' '))
    assert.deepEqual(named.filter(label => !shown.has(label)), [])
    assert(named.length >= 9)
  })

  test(`the ten minutes show the command that the page gives: ${page.path}`, () => {
    const parts = { url: 'http://127.0.0.1:5140', target: 'group:123456', key: '<key>', query: '', words: texts.integrations.words }
    assert.equal(marked(page, 'first-message').trim(), sourcesOf([]).find(({ name }) => name === 'curl')?.setup(parts).snippet)
  })
}

/** A request as GitHub makes it, signed with the secret of the webhook. */
async function fromGitHub(name: string, secret: string): Promise<RequestInit> {
  const { headers, payload } = record(JSON.parse(await readFile(join(repository, `tests/fixtures/hooks/github/${name}.json`), 'utf8')))
  const body = JSON.stringify(payload)
  const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
  const given = Object.entries(record(headers)).map(([name, value]): [string, string] => [name, String(value)])
  return { method: 'POST', headers: [...given, ['content-type', 'application/json'], ['x-hub-signature-256', signature]], body }
}

describe('the bot of this repository', { timeout: 60_000 }, () => {
  const [onebot, simulators] = [pageAt('docs/onebot.md'), pageAt('docs/simulator.md')]

  test('connects to OneBot', async t => {
    const { endpoint } = await platform(t, { token: 'the-token-of-onebot' })
    const place = await workplace(t)
    await online(collect(place.runStart(marked(onebot, 'connect-onebot').replace('ws://127.0.0.1:3001', endpoint))))
  })

  test('lets a OneBot implementation dial', async t => {
    const port = String(await freePort())
    await platform(t, { reverse: { url: `ws://127.0.0.1:${port}/onebot`, token: 'the-token-of-onebot', redialInterval: 100 } })
    const place = await workplace(t)
    await online(collect(place.runStart(`WEBHOOK_PORT=${port} ${marked(onebot, 'dialled-by-onebot')}`)))
  })

  test('connects to a simulator of its own', async t => {
    const place = await workplace(t)
    const port = String(await freePort())
    const shown = collect(place.runStart(marked(simulators, 'start-simulator').replace('5700', port)))
    await until('the simulator tells its addresses', () => shown().includes(`ws://127.0.0.1:${port}`) && shown().includes(`http://127.0.0.1:${port}/simulator/`))
    await online(collect(place.runStart(marked(simulators, 'connect-simulator').replace('5700', port))))
    place.run('sh', ['-c', marked(simulators, 'switch-simulator').replace('5700', port)])
    await until('the bot is muted', () => shown().includes('muted (group 123456)'))
  })

  test('has a simulator with the options of its page', async t => {
    const help = (await workplace(t)).run(process.execPath, [join(repository, 'dist/simulator/cli.js'), '--help'])
    const text = collect(help)
    await once(help, 'close')
    const options: readonly string[] = text().match(/(?<=^\s*)--[\w-]+/gm) ?? []
    for (const [option] of simulators.text.matchAll(/--[a-z][\w-]+/g)) assert(options.includes(option), option)
    assert.match(text(), /for the development of bots.*供开发机器人时使用/s)
  })
})

/** A Koishi bot of a user, in which the plugin is installed. */
class KoishiBot {
  private process: ChildProcess | undefined

  private constructor(readonly folder: string, readonly port: number) {}

  /** The packages of the repository stand for those that a package manager would have brought. */
  static async install(): Promise<KoishiBot> {
    const folder = temporaryFolder()
    const modules = join(folder, 'node_modules')
    await mkdir(modules)
    for (const name of await readdir(join(repository, 'node_modules'))) await symlink(join(repository, 'node_modules', name), join(modules, name))
    await symlink(repository, join(modules, 'koishi-plugin-message-relay'))
    // Koishi adds to it what it finds missing.
    await writeFile(join(folder, 'package.json'), '{"name": "bot", "private": true, "dependencies": {}}')
    return new KoishiBot(folder, await freePort())
  }

  /** @returns what it has printed so far */
  start(): () => string {
    // It starts a second process, which a signal has to reach too.
    const child = spawn(process.execPath, [join(this.folder, 'node_modules/koishi/bin.js'), 'start'], {
      cwd: this.folder,
      // Koishi looks for plugins beside itself, and its real folder is that of the repository.
      env: { ...clean(), NODE_PATH: join(this.folder, 'node_modules') },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.process = child
    return collect(child)
  }

  /** A signal reaches both processes, and again the one that is left. */
  async stop(): Promise<void> {
    const { process: child } = this
    assert(child?.pid !== undefined)
    const closed = once(child, 'close')
    process.kill(-child.pid, 'SIGTERM')
    await once(child, 'exit')
    process.kill(-child.pid, 'SIGTERM')
    await closed
    this.process = undefined
  }

  async remove(): Promise<void> {
    if (this.process?.pid !== undefined && this.process.exitCode === null) {
      process.kill(-this.process.pid, 'SIGKILL')
      await end(this.process)
    }
  }
}
