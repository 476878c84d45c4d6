import assert from 'node:assert/strict'
import { execFile, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { copyFile, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { resolveSettings } from '../../../src/config/settings'
import { temporaryFolder } from '../../support/folder'
import { end, freePort } from '../../support/process'
import { until } from '../../support/until'
import { record, records } from './json'
import { repository } from './pages'

/** A message of the simulator's page. */
export interface Shown {
  id: string
  /** Whether the bot sent it. */
  self: boolean
  parts: Record<string, unknown>[]
}

/** What is started in a folder of its own, as by somebody who follows the pages. */
export class Workplace {
  private readonly children: ChildProcess[] = []

  private constructor(
    readonly folder: string,
    /** Where the bot listens. */
    readonly port: number,
    /** Where a callback listens that is to be started. */
    readonly callbackPort: number,
  ) {}

  /** A folder with what lies at the top of a clone. */
  static async open(): Promise<Workplace> {
    const folder = temporaryFolder()
    for (const file of ['package.json', 'koishi.yml']) await copyFile(join(repository, file), join(folder, file))
    await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'))
    return new Workplace(folder, await freePort(), await freePort())
  }

  /** Starts a program that is ended with the rest. */
  run(command: string, args: string[], environment: Record<string, string> = {}): ChildProcess {
    const child = spawn(command, args, { cwd: this.folder, env: { ...clean(), ...environment }, stdio: ['ignore', 'pipe', 'pipe'] })
    this.children.push(child)
    return child
  }

  /**
   * Runs a block that starts the bot or the simulator, by what the script of package.json runs: npm itself would build once more.
   * The bot listens on the port of this workplace.
   */
  runStart(script: string): ChildProcess {
    const bot = `exec ${process.execPath} ${join(repository, 'dist/bot/start.js')}`
    const simulator = `exec ${process.execPath} ${join(repository, 'dist/simulator/cli.js')}`
    const text = script.replace('npm start', bot).replace('npm run simulator --', simulator)
    assert.notEqual(text, script, 'the block starts nothing')
    return this.run('bash', ['-c', text], { INIT_CWD: this.folder, WEBHOOK_HOST: '127.0.0.1', WEBHOOK_PORT: String(this.port) })
  }

  /** Runs a block as if it had been pasted into a shell. */
  paste(script: string, environment: Record<string, string> = {}): Promise<string> {
    return paste(script, this, environment)
  }

  /** The same, of which the output is JSON. */
  async output(script: string, environment: Record<string, string> = {}): Promise<unknown> {
    return JSON.parse(await this.paste(script, environment))
  }

  async close(): Promise<void> {
    await Promise.all(this.children.map(child => end(child)))
  }
}

/** A bot of the repository with its simulator, as `npm start` gives it, and with a callback. */
export class Reader {
  private constructor(
    readonly place: Workplace,
    /** Address of the simulator's page. */
    readonly page: string,
  ) {}

  /** @param start the block that starts the bot with a callback on port 3000 */
  static async start(start: string): Promise<Reader> {
    const place = await Workplace.open()
    try {
      const log = collect(place.runStart(start.replace('3000', String(place.callbackPort))))
      await online(log)
      return new Reader(place, /http:\/\/127\.0\.0\.1:\d+\/simulator\//.exec(log())?.[0] ?? '')
    } catch (error) {
      await place.close()
      throw error
    }
  }

  /** Address of the bot, without a slash at its end. */
  get url(): string {
    return `http://127.0.0.1:${this.place.port}`
  }

  async key(): Promise<string> {
    return (await readFile(join(this.place.folder, 'data/api-key'), 'utf8')).trim()
  }

  /** The messages of a chat, as the simulator's page shows them. */
  async messages(chat = '123456'): Promise<Shown[]> {
    const state = record(await (await fetch(new URL('api/state', this.page))).json())
    const found = records(state.chats).find(({ id }) => id === chat)
    return records(record(found).messages).map(({ id, sender, parts }) => ({
      id: String(id), self: record(sender).self === true, parts: records(parts),
    }))
  }

  /** The bytes of a picture that the page shows. */
  async bytes(part: Record<string, unknown> | undefined): Promise<Buffer> {
    return Buffer.from(await (await fetch(new URL(String(part?.src), this.page))).arrayBuffer())
  }

  /** Lets a member of the group say something. @param reply the message that it quotes */
  say(text: string, user = '10001', reply?: string): Promise<void> {
    return this.act('say', { type: 'group', chat: '123456', user, text, reply })
  }

  /** Mutes the bot in the group, or lifts that. */
  mute(on: boolean): Promise<void> {
    return this.act('switch', { name: 'muted', type: 'group', chat: '123456', on })
  }

  private async act(name: string, body: object): Promise<void> {
    const { status } = await fetch(new URL(`api/${name}`, this.page), {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
    })
    assert.equal(status, 200)
  }

  async stop(): Promise<void> {
    await this.place.close()
  }
}

/** Runs a block as if it had been pasted into a shell in a folder, with the port of the bot there, and gives what it prints. */
export async function paste(
  script: string, { folder, port }: { folder: string, port: number }, environment: Record<string, string> = {},
): Promise<string> {
  const text = script.replaceAll(/127\.0\.0\.1:(?:8081|5140)/g, `127.0.0.1:${port}`)
  const options = { cwd: folder, env: { ...clean(), ...environment } }
  const { stdout } = await promisify(execFile)('bash', ['-c', `set -eo pipefail\n${text}`], options)
  return stdout
}

/** Waits until a bot says that it is online, and that its server listens. */
export async function online(log: () => string): Promise<void> {
  await until('the bot is online', () => log().includes('bot onebot:10000 online') && log().includes('server listening'), 20_000)
    .catch((error: unknown) => assert.fail(`${String(error)}\n${log()}`))
}

/** Gathers what a program prints. */
export function collect(child: ChildProcess): () => string {
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => text += chunk.toString())
  return () => text
}

/** Whether a program is installed. */
export function has(program: string): boolean {
  return spawnSync(program, ['--version']).status === 0
}

/** The environment without what would change the bot's settings. */
export function clean(): NodeJS.ProcessEnv {
  const own = new Set(resolveSettings({}, {}).origins.map(({ variable }) => variable))
  return Object.fromEntries(Object.entries(process.env)
    .filter(([name]) => !own.has(name) && !/^(?:WEBHOOK|ONEBOT|NODE_TEST|npm_|INIT_CWD)/.test(name)))
}
