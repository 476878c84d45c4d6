import { Universal, type Bot, type Context, type Logger } from 'koishi'
import { v7 as uuid } from 'uuid'
import type { Lanes } from '../delivery/lanes'
import type { Transmitter } from '../delivery/transmitter'
import { Claims } from './claims'
import { DatabaseRecords } from './database'
import { Outbox, type LaneClaims } from './outbox'

/** What there is where there is a database. */
export interface Storage {
  records: DatabaseRecords
  outbox: Outbox
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
/** How often records that are too old are removed, in milliseconds. */
const purgeInterval = 60_000

/** A database within the process, which no other relay can use. */
const localClaims: LaneClaims = {
  acquire: () => Promise.resolve(true),
  release: () => Promise.resolve(),
}

/**
 * Sets up the outbox in the Koishi database, and goes on with what an earlier process left there.
 *
 * @param ctx a context with the database; when it is disposed, so is everything here
 */
export function createStorage(ctx: Context, { lanes, transmitter, bots, logger, retention, stop }: StorageOptions): Storage {
  const records = new DatabaseRecords(ctx)
  const isLocal = isEmbedded(ctx)
  const outbox = new Outbox({ records, claims: isLocal ? localClaims : new Claims(ctx), lanes, transmitter, bots, logger, stop })

  const run = (what: string, work: () => Promise<void>): void => {
    if (stop.aborted) return
    work().catch((error: unknown) => {
      // The text of a database error may hold the values of its statement: messages.
      logger.warn('%s', `${what} failed: ${error instanceof Error ? error.name : 'unknown error'}`)
    })
  }
  const scan = (): void => run('looking through the outbox', async () => {
    await outbox.expireOverdue()
    await outbox.scan()
  })
  const purge = (): void => run('removing old records', async () => {
    const oldest = uuid({ msecs: Date.now() - retention, seq: 0, random: new Uint8Array(16) })
    while (!stop.aborted && await records.purge(oldest)) await new Promise(resolve => setImmediate(resolve))
  })

  run('opening the outbox', async () => {
    // Another relay may be at work in a shared database; those rows are judged by their age instead.
    if (isLocal) await records.abandonInterrupted()
    scan()
    purge()
  })
  ctx.on('bot-status-updated', bot => {
    if (bot.status === Universal.Status.ONLINE) scan()
  })
  ctx.setInterval(scan, isLocal ? localInterval : sharedInterval)
  ctx.setInterval(purge, purgeInterval)
  return { records, outbox }
}

function isEmbedded(ctx: Context): boolean {
  return ctx.database.drivers.every(driver => /sqlite|memory/i.test(driver.constructor.name))
}
