import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { Simulator } from '../../../simulator'
import type { Config } from '../../../src'
import { until } from '../../support/until'

const apiKey = 'a-key-for-tests'

/** A relay that is killed and started again, and the platform that stays. */
export class Victim {
  private child: ChildProcess | undefined
  private url = ''

  constructor(readonly simulator: Simulator, readonly folder: string, private readonly config: Config) {}

  async start(): Promise<void> {
    const { simulator: { endpoint, selfId }, folder, config } = this
    this.child = fork(join(__dirname, 'child.ts'), [endpoint, selfId, folder, apiKey, JSON.stringify(config)], {
      execArgv: ['--require', 'yml-register', '--import', 'tsx'], stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    const message: unknown[] = await once(this.child, 'message')
    this.url = `http://127.0.0.1:${String(message[0])}`
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    if (!this.child || !this.isRunning()) return
    const ended = once(this.child, 'exit')
    this.child.kill('SIGKILL')
    await ended
  }

  async online(): Promise<void> {
    await until('the bot is online', async () => (await this.get('/readyz')).status === 200, 20_000)
  }

  post(body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${this.url}/webhook`, { method: 'POST', body: JSON.stringify(body), headers: { 'x-api-key': apiKey, ...headers } })
  }

  get(path: string): Promise<Response> {
    return fetch(this.url + path, { headers: { 'x-api-key': apiKey } })
  }

  retry(id: string): Promise<Response> {
    return fetch(`${this.url}/deliveries/${id}/retry`, { method: 'POST', headers: { 'x-api-key': apiKey } })
  }

  async upload(name: string, text: string): Promise<string> {
    const form = new FormData()
    form.append('file', new Blob([text]), name)
    const response = await fetch(`${this.url}/upload`, { method: 'POST', body: form, headers: { 'x-api-key': apiKey } })
    return /"path":"([^"]+)"/.exec(await response.text())?.[1] ?? ''
  }

  private isRunning(): boolean {
    return this.child?.exitCode === null && this.child.signalCode === null
  }

  /** The states of all deliveries, the oldest first. */
  async states(): Promise<string[]> {
    return [...(await (await this.get('/deliveries')).text()).matchAll(/"state":"(\w+)"/g)].map(([, state]) => state ?? '').reverse()
  }

  texts(): string[] {
    return this.simulator.ledger.map(({ text, media: [medium] }) => medium ? `${text}[${medium.type} ${medium.size}]` : text)
  }
}

/** Starts one whose bot is online, and that ends with the test. */
export async function victim(t: TestContext, config: Config = {}): Promise<Victim> {
  const simulator = await Simulator.start()
  t.after(() => simulator.close())
  const folder = await mkdtemp(join(tmpdir(), 'relay-victim-'))
  const relay = new Victim(simulator, folder, config)
  t.after(async () => {
    // It writes until it is gone.
    await relay.kill()
    await rm(folder, { recursive: true, force: true })
  })
  await relay.start()
  await relay.online()
  return relay
}
