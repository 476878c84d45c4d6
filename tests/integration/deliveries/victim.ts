import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Simulator } from '../../../simulator'
import type { Config } from '../../../src'
import { RelayProcess } from '../../faults/process'
import { temporaryFolder } from '../../support/folder'
import { callerOf } from '../../support/caller'
import { apiKey } from '../../support/relay'
import { until } from '../../support/until'

/** A relay that is killed and started again, and the platform that stays. */
export class Victim {
  readonly api = callerOf((...args) => this.request(...args))
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
    await until('the bot is online', async () => (await this.request('/readyz')).status === 200, 20_000)
  }

  request(path: string, init?: RequestInit): Promise<Response> {
    assert(this.process)
    return this.process.request(path, init)
  }

  /** The states of the deliveries to a group, the oldest first. */
  async states(group: string): Promise<string[]> {
    return (await this.api.list(`?target=group:${group}`)).map(({ state }) => state).reverse()
  }

  /** What has arrived in a group. */
  texts(group: string): string[] {
    const entries = this.simulator.ledger.filter(({ target: { id } }) => id === group)
    return entries.map(({ text, media: [medium] }) => medium ? `${text}[${medium.type} ${medium.size}]` : text)
  }
}

/** Starts one whose bot is online, and that ends with the test. */
async function victim(t: TestContext, config: Config = {}): Promise<Victim> {
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
