import { Universal, type Bot } from 'koishi'
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Config } from '../../../src'
import { request } from '../../../src/platform/keeper/private-fields'
import type { SimulatorOptions } from '../../../simulator'
import { callerOf, type Caller } from '../../support/caller'
import { startRelay, useStarted, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'

export const group = '123456'
export const other = '654321'

/** A request whose answer may be given before the message is delivered. */
export const later = { prefer: 'respond-async' }

/** A relay, and what tests of deliveries ask it for. */
export interface StoredRelay extends TestRelay, Caller {
  /** Sends a text later and gives the ID of the delivery. */
  queue: (text: string, more?: object) => Promise<string>
  texts: () => string[]
  bot: Bot
}

export interface StoredOptions {
  config?: Config
  simulator?: SimulatorOptions
}

/** Starts a relay for one test. */
export async function relayWith(t: TestContext, options?: StoredOptions): Promise<StoredRelay> {
  const relay = await startStored(options)
  t.after(() => relay.stop())
  return relay
}

/** A relay for the tests of a suite, to be used once they run. */
export function useStored(options: StoredOptions): StoredRelay {
  return useStarted(() => startStored(options))
}

async function startStored(options?: StoredOptions): Promise<StoredRelay> {
  const relay = await startRelay(options)
  const bot = [...relay.app.bots].find(each => each.platform === 'onebot')
  assert(bot)
  const caller = callerOf(relay.request)
  return {
    ...relay,
    ...caller,
    bot,
    queue: (text, more = {}) => caller.accept({ group_id: group, msg: text, ...more }),
    texts: () => relay.simulator.ledger.map(({ text }) => text),
  }
}

/** Lets an answer that the platform holds back arrive: it follows the first call, and the second one's answer follows it. */
export async function releaseHeld({ bot }: StoredRelay): Promise<void> {
  await request(bot, 'get_status', {})
  await request(bot, 'get_status', {})
}

/** Takes the bot's connection away until the function returned is called. */
export async function takeOffline({ simulator, bot }: StoredRelay): Promise<() => Promise<void>> {
  await simulator.goOffline()
  await until('the bot is offline', () => bot.status !== Universal.Status.ONLINE)
  return async () => {
    await simulator.goOnline()
    await until('the bot is online', () => bot.status === Universal.Status.ONLINE)
  }
}
