import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Config as MqttConfig } from '../../plugins/mqtt/src'
import type { Config } from '../../src'
import type { AdapterEntry } from '../support/adapter'
import { bundle } from '../support/bundle'

interface OneBotPlace {
  endpoint: string
  selfId: string
}

/** The options of the process. */
export interface ProcessOptions {
  config: Config
  apiKey: string
  /** The endpoint and account of a OneBot implementation, or the adapter of another platform. */
  platform: OneBotPlace | { adapter: AdapterEntry }
  /** The folder of its data and its uploads. */
  folder: string
  /** The factor by which waits of a minute and more are shortened. */
  haste?: number
  /** The settings of the plugin that takes messages from an MQTT broker. */
  mqtt?: MqttConfig
}

/** A command to the running process. */
export interface Order { kind: 'reload', after: number }

/** How long a process may take to start, in milliseconds. */
const patience = 60_000

/** A relay in its own process. */
export class RelayProcess {
  private constructor(
    private readonly child: ChildProcess, private readonly url: string, private readonly apiKey: string, readonly folder: string,
  ) {}

  static async start(options: ProcessOptions): Promise<RelayProcess> {
    const child = fork(await bundle(join(__dirname, 'child.ts')), [JSON.stringify(options)], { execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    let complaints = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      complaints = (complaints + chunk.toString()).slice(-4000)
    })
    const url = await Promise.race([
      once(child, 'message', { signal: AbortSignal.timeout(patience) }).then(([message]) => String(message)),
      once(child, 'exit').then(() => {
        throw new Error(`the relay did not start: ${complaints}`)
      }),
    ])
    return new RelayProcess(child, url, options.apiKey, options.folder)
  }

  /** Sends a request with the master key, unless the headers contain another. */
  request(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(this.url + path, { ...init, headers: { 'x-api-key': this.apiKey, ...Object.fromEntries(new Headers(init.headers)) } })
  }

  /** Disposes of the plugin and loads it again after this many milliseconds. Resolves when that is done or the process has ended. */
  async reload(after = 0): Promise<void> {
    const done = this.waitFor('reloaded')
    this.order({ kind: 'reload', after })
    await done
  }

  /** Resolves when the process sends this word or has ended. */
  private waitFor(word: string): Promise<void> {
    return new Promise(resolve => {
      const listen = (message: unknown): void => {
        if (message !== word) return
        this.child.off('message', listen)
        resolve()
      }
      this.child.on('message', listen)
      this.child.once('exit', () => resolve())
    })
  }

  private order(order: Order): void {
    // The process may have been killed.
    if (this.child.connected) this.child.send(order, () => undefined)
  }

  /** Suspends or resumes the process. */
  freeze(isFrozen: boolean): void {
    this.child.kill(isFrozen ? 'SIGSTOP' : 'SIGCONT')
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    const exited = once(this.child, 'exit')
    this.child.kill(signal)
    await exited
  }
}
