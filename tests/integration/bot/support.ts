import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { freePort } from '../../support/process'
import { until } from '../../support/until'

const repository = resolve(__dirname, '../../..')

/** A copy of the repository with what was built there: a bot of it may build anew without disturbing other tests. */
export class Checkout {
  private readonly bots: StartedBot[] = []

  private constructor(readonly root: string, readonly repository: string) {}

  static async create(): Promise<Checkout> {
    const root = await mkdtemp(join(tmpdir(), 'relay-bot-'))
    const copy = join(root, 'repository')
    await mkdir(copy)
    for (const name of ['package.json', 'koishi.yml', 'tsconfig.json', 'scripts', 'src', 'bot', 'client', 'simulator', 'cli', 'plugins', 'lib', 'dist']) {
      await cp(join(repository, name), join(copy, name), { recursive: true })
    }
    await symlink(join(repository, 'node_modules'), join(copy, 'node_modules'))
    assert(existsSync(join(copy, 'dist/bot/start.js')), 'run npm run build')
    const checkout = new Checkout(root, copy)
    // Whoever breaks off the tests does not reach the bots, which lead groups of their own.
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => {
        void checkout.remove().finally(() => process.exit(1))
      })
    }
    return checkout
  }

  /** A new, empty folder. */
  folder(): Promise<string> {
    return mkdtemp(join(this.root, 'folder-'))
  }

  /**
   * Starts a bot in a folder of its own.
   *
   * @param env beside which the bot has next to no environment; a port that is free unless given
   */
  async start(env: Record<string, string> = {}, { cwd, byNpm = false }: { cwd?: string, byNpm?: boolean } = {}): Promise<StartedBot> {
    const folder = cwd ?? await this.folder()
    const temporary = await this.folder()
    const [command, args] = byNpm
      ? ['npm', ['--prefix', this.repository, 'start']] as const
      : [process.execPath, [join(this.repository, 'dist/bot/start.js')]] as const
    const { PATH = '', HOME = '' } = process.env
    const port = env.WEBHOOK_PORT ?? String(await freePort())
    const child = spawn(command, args, {
      cwd: folder,
      // A group of its own, to be ended whole.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH, HOME, TMPDIR: temporary, WEBHOOK_HOST: '127.0.0.1', WEBHOOK_PORT: port, ...env },
    })
    const bot = new StartedBot(child, folder, temporary, port)
    this.bots.push(bot)
    return bot
  }

  /** Hashes of all files, but for those that git ignores. */
  async contents(): Promise<Record<string, string>> {
    const ignored = /^(?:node_modules|lib|plugins\/mqtt\/lib|dist|data|uploads|\.env)(?:\/|$)/
    const names = (await readdir(this.repository, { recursive: true, withFileTypes: true }))
      .filter(entry => entry.isFile())
      .map(entry => join(entry.parentPath, entry.name).slice(this.repository.length + 1))
      .filter(name => !ignored.test(name))
      .sort()
    return Object.fromEntries(await Promise.all(names.map(async name => [
      name, createHash('sha256').update(await readFile(join(this.repository, name))).digest('hex'),
    ] as const)))
  }

  /** Ends whatever still runs of the bots that were started. */
  async endAll(): Promise<void> {
    await Promise.all(this.bots.splice(0).map(bot => bot.kill()))
  }

  async remove(): Promise<void> {
    await this.endAll()
    await rm(this.root, { recursive: true })
  }
}

/** A bot in a process of its own. */
export class StartedBot {
  /** What it has written to standard output and error, line by line. */
  readonly lines: string[] = []
  private ended = false

  constructor(readonly child: ChildProcess, readonly folder: string, readonly temporary: string, readonly port: string) {
    for (const stream of [child.stdout, child.stderr]) {
      assert(stream)
      createInterface(stream).on('line', line => this.lines.push(line))
    }
    child.once('close', () => {
      this.ended = true
    })
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  get log(): string {
    return this.lines.join('\n')
  }

  /** Waits for a line; returns what the expression found. */
  async line(expression: RegExp): Promise<RegExpExecArray> {
    let found: RegExpExecArray | null = null
    await until(`there is a line like ${expression.source}`, () => {
      found = expression.exec(this.log)
      if (!found && this.ended) throw new Error(`ended without a line like ${expression.source}:\n${this.log}`)
      return found !== null
    }, 20_000)
    assert(found)
    return found
  }

  /** Waits until it answers; the line comes a little before it listens. */
  async listening(): Promise<void> {
    await this.line(/server listening at/)
    await until('it answers', () => fetch(`${this.url}/healthz`).then(({ ok }) => ok, () => false))
  }

  /** Waits until it answers and a bot is online. */
  async ready(): Promise<void> {
    await this.listening()
    await this.line(/bot onebot:\d+ online/)
  }

  /** The key that it has generated. */
  async key(dataDir = join(this.folder, 'data')): Promise<string> {
    return (await readFile(join(dataDir, 'api-key'), 'utf8')).trim()
  }

  /** Waits until it has ended; returns its exit code, or the signal that ended it. */
  async exit(): Promise<number | NodeJS.Signals | null> {
    if (!this.ended) await once(this.child, 'close')
    return this.child.exitCode ?? this.child.signalCode
  }

  /** Sends it a signal and waits for its end; returns how long that took, in milliseconds. */
  async end(signal: NodeJS.Signals): Promise<number> {
    const start = performance.now()
    this.child.kill(signal)
    await this.exit()
    return performance.now() - start
  }

  /** Ends its whole group at once, if anything is left of it. */
  async kill(): Promise<void> {
    const { pid } = this.child
    if (pid === undefined || this.ended) return
    process.kill(-pid, 'SIGKILL')
    await this.exit()
  }
}

/** Whether anything takes connections on this port. */
export async function isTaken(port: string): Promise<boolean> {
  const server = createServer().listen(Number(port), '127.0.0.1')
  try {
    await once(server, 'listening')
    return false
  } catch {
    return true
  } finally {
    server.close()
  }
}
