import { Universal, type Bot, type Context } from 'koishi'
import { MemoryDriver } from 'koishi-plugin-database-memory'
import SQLiteDriver from 'koishi-plugin-database-sqlite'
import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Config } from '../../../src'
import { request } from '../../../src/platform/keeper/private-fields'
import type { SimulatorOptions } from '../../../simulator'
import { callerOf, type Caller } from '../../support/caller'
import { temporaryFolder } from '../../support/folder'
import { startRelay, useStarted, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'

export const group = '123456'
export const other = '654321'

/** A request whose answer may be given before the message is delivered. */
export const later = { prefer: 'respond-async' }

/** A relay with a database of its own. */
export interface StoredRelay extends TestRelay, Caller {
  /** Sends a text later and gives the ID of the delivery. */
  queue: (text: string, more?: object) => Promise<string>
  texts: () => string[]
  bot: Bot
}

export interface StoredOptions {
  config?: Config
  simulator?: SimulatorOptions
  /** Of the database file; a fresh one unless given, `null` for none; `:memory:` for the driver whose data end with the process. */
  path?: string | null
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

async function startStored({ config, simulator, path }: StoredOptions = {}): Promise<StoredRelay> {
  const file = path === undefined ? join(temporaryFolder(), 'koishi.db') : path
  const relay = await startRelay({
    ...config && { config },
    ...simulator && { simulator },
    setup: app => {
      if (file === ':memory:') app.plugin(MemoryDriver, {})
      else if (typeof file === 'string') app.plugin(SQLiteDriver, { path: file })
    },
  })
  if (typeof file === 'string') await until('the database is there', () => relay.app.get('database') !== undefined)
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

/** The driver of the database. */
export function driverOf({ app }: { app: Context }): SQLiteDriver {
  const [driver] = app.model.drivers
  assert(driver instanceof SQLiteDriver)
  return driver
}

/** Makes statements of the database fail, as long as the function says so. */
export function failStatements(relay: { app: Context }, fails: (sql: string) => boolean): () => void {
  const { db } = driverOf(relay)
  const prepare = db.prepare.bind(db)
  db.prepare = (...args: Parameters<typeof prepare>) => {
    if (fails(args[0])) throw new Error(`disk I/O error in ${args[0]}`)
    return prepare(...args)
  }
  return () => {
    db.prepare = prepare
  }
}

/** How many rows the journal has. */
export function countRows(relay: { app: Context }): number {
  return Number(driverOf(relay).db.exec('SELECT count(*) FROM message_relay_journal')[0]?.values[0]?.[0])
}
