import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { fieldsOf } from '../../../src/lib/shape'
import { Simulator } from '../../../simulator'
import type { Config } from '../../../src'
import { RelayProcess } from '../../faults/process'
import { temporaryFolder } from '../../support/folder'
import { apiKey } from '../../support/relay'
import { until } from '../../support/until'

/** A relay that is killed and started again, and the platform that stays. */
export class Victim {
  private process: RelayProcess | undefined

  constructor(readonly simulator: Simulator, readonly folder: string, private readonly config: Config) {}

  async start(): Promise<void> {
    const { simulator: { endpoint, selfId }, folder } = this
    const config = Object.assign({ chatSettleTime: 0.001 }, this.config)
    this.process = await RelayProcess.start({ apiKey, platform: { endpoint, selfId }, folder, config })
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    await this.process?.end('SIGKILL')
  }

  async online(): Promise<void> {
    await until('the bot is online', async () => (await this.get('/readyz')).status === 200, 20_000)
  }

  get(path: string, init?: RequestInit): Promise<Response> {
    assert(this.process)
    return this.process.request(path, init)
  }

  post(body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return this.get('/webhook', { method: 'POST', body: JSON.stringify(body), headers })
  }

  async upload(name: string, text: string): Promise<string> {
    const form = new FormData()
    form.append('file', new Blob([text]), name)
    return /"path":"([^"]+)"/.exec(await (await this.get('/upload', { method: 'POST', body: form })).text())?.[1] ?? ''
  }

  /** The deliveries as the API tells them, the newest first. */
  async records(query = ''): Promise<Readonly<Record<string, unknown>>[]> {
    const { deliveries } = fieldsOf(fieldsOf(await (await this.get(`/deliveries${query}`)).json()).data)
    return Array.isArray(deliveries) ? deliveries.map(fieldsOf) : []
  }

  /** The states of all deliveries, or of those to a group, the oldest first. */
  async states(group?: string): Promise<string[]> {
    return (await this.records(group === undefined ? '' : `?target=group:${group}`)).map(({ state }) => String(state)).reverse()
  }

  /** What has arrived, in one group or anywhere. */
  texts(group?: string): string[] {
    const entries = this.simulator.ledger.filter(({ target: { id } }) => group === undefined || id === group)
    return entries.map(({ text, media: [medium] }) => medium ? `${text}[${medium.type} ${medium.size}]` : text)
  }
}

/** Starts one whose bot is online, and that ends with the test. */
export async function victim(t: TestContext, config: Config = {}): Promise<Victim> {
  const simulator = await Simulator.start({ anyTarget: true })
  t.after(() => simulator.close())
  const relay = new Victim(simulator, temporaryFolder(), config)
  t.after(() => relay.kill())
  await relay.start()
  await relay.online()
  return relay
}

/**
 * Something that is under way in a chat when the relay is killed.
 *
 * @returns what has to be true of it afterwards
 */
export type Scene = (relay: Victim, chat: string) => Promise<() => Promise<void>>

export interface Stage {
  config: Config
  /** Whether the account is offline until the next process starts. */
  isOffline?: boolean
}

/** Plays scenes at the same time, each in a chat of its own, over one kill. No fault is left when the next process starts. */
export function overKill(what: string, { config, isOffline }: Stage, scenes: Readonly<Record<string, Scene>>): void {
  test(`after kill -9 ${what}`, async t => {
    const relay = await victim(t, config)
    if (isOffline) await relay.simulator.goOffline()
    const played = Object.entries(scenes).map(async ([name, scene], index) => [name, await scene(relay, String(1001 + index))] as const)
    const checks = await Promise.all(played)
    await relay.kill()
    relay.simulator.clearFaults()
    if (isOffline) await relay.simulator.goOnline()
    await relay.start()
    await relay.online()
    await Promise.all(checks.map(([name, check]) => t.test(name, check)))
  })
}
