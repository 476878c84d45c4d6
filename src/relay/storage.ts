import { Universal, type Bot, type Context, type Logger } from 'koishi'
import { toBotName } from '../platform/bot-name'
import type { Lanes } from './queue'
import type { Transmitter } from './transmitter'
import { Claims } from './lease'
import { DatabaseRecords } from './database-store'
import type { LaneClaims } from './backlog'
import { Outbox } from './outbox'
import { breathe, describe, persist } from './patience'
import { Precedence } from './precedence'
import { messageIdsOf } from './delivery'
import { silenceStatements } from './silence'

/** What there is where there is a database. */
export interface Storage {
  records: DatabaseRecords
  outbox: Outbox
  logger: Logger
  /** Aborted when the relay stops, or the database goes. */
  stop: AbortSignal
}

export interface StorageOptions {
  lanes: Lanes
  transmitter: Transmitter
  bots: Iterable<Bot>
  logger: Logger
  /** How long records are kept, in milliseconds. */
  retention: number
  stop: AbortSignal
}

/** How often work is looked for that came from another relay, in milliseconds. */
const sharedInterval = 1_000
/** The same where there is no other relay: only in case something was missed. */
const localInterval = 30_000
/** How often it is looked whose time is over, in milliseconds. */
const expiryInterval = 5_000
/** How often records that are too old are removed, in milliseconds. */
const purgeInterval = 60_000

/** A database within the process, which no other relay can use. */
const localClaims: LaneClaims = {
  acquire: () => Promise.resolve(true),
  holds: () => true,
  release: () => Promise.resolve(),
  isShared: false,
}

/**
 * Sets up the outbox in the Koishi database, and goes on with what an earlier process left there.
 *
 * @param ctx a context with the database; when it is disposed, so is everything here
 */
export function createStorage(ctx: Context, { lanes, transmitter, bots, logger, retention, stop }: StorageOptions): Storage {
  silenceStatements(ctx)
  const lifetime = new AbortController()
  const end = (): void => {
    stop.removeEventListener('abort', end)
    lifetime.abort()
  }
  stop.addEventListener('abort', end)
  ctx.on('dispose', end)
  const { signal } = lifetime
  const records = new DatabaseRecords(ctx)
  const isLocal = isEmbedded(ctx)
  const started = Date.now()
  const outbox = new Outbox(
    {
      records, lanes, transmitter, bots, logger, stop: signal,
      ...isLocal ? { claims: localClaims, precedence: new Precedence() } : { claims: new Claims(ctx) },
    },
    async () => {
      // Another relay may be at work in a shared database; those rows are judged by their age instead.
      if (isLocal) await persist(() => records.abandonInterrupted(started), { logger, stop: signal })
      // What an earlier process has sent is not to be taken for what this one sends.
      const latest = await persist(() => records.changedBefore(started), { logger, stop: signal })
      for (const record of latest.reverse()) {
        const { bot, target, sending } = record
        transmitter.account(toBotName(bot), target, [...messageIdsOf(record), ...sending?.others ?? []])
      }
    },
  )

  const every = (interval: number, what: string, work: () => Promise<void>): void => {
    let isRunning = false
    const run = async (): Promise<void> => {
      if (isRunning || signal.aborted) return
      isRunning = true
      await work().catch((error: unknown) => {
        logger.warn('%s', `${what} failed: ${describe(error)}`)
      })
      isRunning = false
    }
    ctx.setInterval(() => void run(), interval)
    void run()
  }
  every(isLocal ? localInterval : sharedInterval, 'looking through the outbox', () => outbox.opened.then(() => outbox.scan()))
  every(expiryInterval, 'dropping what is too late', () => outbox.expireOverdue())
  every(purgeInterval, 'removing old records', async () => {
    const time = Date.now() - retention
    while (!signal.aborted && await records.purge(time)) await breathe()
  })
  ctx.on('bot-status-updated', bot => {
    if (bot.status === Universal.Status.ONLINE) outbox.wake(bot.sid)
  })
  return { records, outbox, logger, stop: signal }
}

function isEmbedded(ctx: Context): boolean {
  return ctx.database.drivers.every(driver => /sqlite|memory/i.test(driver.constructor.name))
}
