import { load } from 'js-yaml'
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { Simulator } from '../../simulator'
import { end, freePort } from '../support/process'
import { until } from '../support/until'
import { record } from './support/json'
import { code, marked, repository, table, versions } from './support/pages'
import { clean, collect, paste, Workplace } from './support/reader'

describe('the way from CI to a group', { timeout: 60_000 }, () => {
  for (const page of versions('README')) {
    test(`leads to a message with the steps of ${page.path}`, async () => {
      const simulator = await Simulator.start({ token: 'the-token-of-onebot' })
      const bot = await KoishiBot.install()
      try {
        const [config = ''] = page.blocks.filter(({ language, text }) => language === 'yaml' && text.startsWith('plugins:')).map(({ text }) => text)
        record(load(config))
        await writeFile(join(bot.folder, 'koishi.yml'), config.replace('5140', String(bot.port)).replace('ws://127.0.0.1:3001', simulator.endpoint))
        await paste(marked(page, 'make-key'), bot)
        assert.match(await readFile(join(bot.folder, '.env'), 'utf8'), /^WEBHOOK_API_KEY=[0-9a-f]{64}\n$/)
        const log = bot.start()
        await until('the bot is online', () => log().includes('bot onebot:10000 online') && log().includes('server listening'), 20_000)
          .catch((error: unknown) => assert.fail(`${String(error)}\n${log()}`))
        assert(log().includes('the API key is configured'), log())

        assert.match(await paste(marked(page, 'first-message'), bot), /^\{"code":0,/)
        assert.deepEqual(simulator.ledger.map(({ target }) => target.id), ['123456'])
      } finally {
        await bot.remove()
        await simulator.close()
      }
    })
  }
})

describe('the bot of this repository', { timeout: 60_000 }, () => {
  for (const page of versions('onebot')) {
    test(`connects to OneBot with the command of ${page.path}`, async () => {
      const simulator = await Simulator.start({ token: 'the-token-of-onebot' })
      const place = await Workplace.open()
      try {
        const log = collect(place.runStart(marked(page, 'connect-onebot').replace('ws://127.0.0.1:3001', simulator.endpoint)))
        await until('the bot is online', () => log().includes('bot onebot:10000 online'), 20_000)
          .catch((error: unknown) => assert.fail(`${String(error)}\n${log()}`))
      } finally {
        await place.close()
        await simulator.close()
      }
    })
  }

  for (const page of versions('onebot')) {
    test(`lets a OneBot implementation dial with the command of ${page.path}`, async () => {
      const place = await Workplace.open()
      const port = String(await freePort())
      const dialling = await Simulator.start({ reverse: { url: `ws://127.0.0.1:${port}/onebot`, token: 'the-token-of-onebot', redialInterval: 100 } })
      try {
        const log = collect(place.runStart(`WEBHOOK_PORT=${port} ${marked(page, 'dialled-by-onebot')}`))
        await until('the bot is online', () => log().includes('bot onebot:10000 online'), 20_000)
          .catch((error: unknown) => assert.fail(`${String(error)}\n${log()}`))
      } finally {
        await place.close()
        await dialling.close()
      }
    })
  }

  for (const page of versions('simulator')) {
    test(`connects to a simulator of its own with the commands of ${page.path}`, async () => {
      const place = await Workplace.open()
      try {
        const port = String(await freePort())
        const shown = collect(place.runStart(marked(page, 'start-simulator').replace('5700', port)))
        await until('the simulator tells its addresses', () => shown().includes(`ws://127.0.0.1:${port}`) && shown().includes(`http://127.0.0.1:${port}/simulator/`))
        const log = collect(place.runStart(marked(page, 'connect-simulator').replace('5700', port)))
        await until('the bot is online', () => log().includes('bot onebot:10000 online'), 20_000)
          .catch((error: unknown) => assert.fail(`${String(error)}\n${log()}`))
        place.run('sh', ['-c', marked(page, 'switch-simulator').replace('5700', port)])
        await until('the bot is muted', () => shown().includes('muted (group 123456)'))
      } finally {
        await place.close()
      }
    })

    test(`has a simulator with the options of ${page.path}`, async () => {
      const place = await Workplace.open()
      try {
        const help = place.run(process.execPath, [join(repository, 'dist/simulator/cli.js'), '--help'])
        const text = collect(help)
        await once(help, 'close')
        const shown = table(page, /^(Option|选项)$/).map(([option]) => code(option)?.split(' ')[0])
        assert.deepEqual(new Set(text().match(/(?<=^\s*)--[\w-]+/gm)), new Set(shown))
      } finally {
        await place.close()
      }
    })
  }
})

/** A Koishi bot of a user, in which the plugin is installed. */
class KoishiBot {
  private process: ChildProcess | undefined

  private constructor(readonly folder: string, readonly port: number) {}

  /** The packages of the repository stand for those that a package manager would have brought. */
  static async install(): Promise<KoishiBot> {
    const folder = await mkdtemp(join(tmpdir(), 'relay-docs-'))
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

  async remove(): Promise<void> {
    if (this.process?.pid !== undefined && this.process.exitCode === null) {
      process.kill(-this.process.pid, 'SIGKILL')
      await end(this.process)
    }
    await rm(this.folder, { recursive: true, force: true })
  }
}
