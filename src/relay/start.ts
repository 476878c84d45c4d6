import type { Context } from 'koishi'
import { isDatabaseLoaded } from '../lib/database'
import { unwrap } from '../lib/unwrap'
import { pause, systemClock } from './clock'
import { nameOfError } from './deliveries'
import { DatabaseJournal, type ContentFiles } from './journal-database'
import { FileOwner, RowOwner } from './owner'
import { Relay, Shared, type RelayOptions } from './relay'
import { keyLifetime } from './replay'

export interface StartOptions extends Omit<RelayOptions, 'clock'> {
  /** The folder of what outlives the bot, absolute. */
  dataDir: string
  files: RelayOptions['files'] & ContentFiles
  /** How many records are kept in a database, at most. */
  recordLimit: number
}

/** How long a database may take for a statement, in milliseconds. */
const statementTimeout = 8_000

/** How long a database may take to be there after the relay was loaded, in milliseconds. */
const arrivalTime = 2_000

/** How long to wait before a database that does not answer is asked again, in milliseconds. */
const retryDelay = 1_000

/** What the relays of each app share. */
const apps = new WeakMap<object, { shared: Shared, last: Promise<void> }>()

/**
 * Starts the relay of an app: with the database of the bot where there is one, otherwise in memory. What it shares with the relay before a
 * reload of the plugin is known to it, and it begins once that one has ended.
 *
 * @returns the relay, and what ends it: to be called after `relay.end()`
 */
export function startRelay(ctx: Context, started: StartOptions): { relay: Relay, finish: () => Promise<void> } {
  const { dataDir, recordLimit, ...options } = started
  const clock = systemClock
  const key = unwrap(ctx.root)
  const app = apps.get(key) ?? { shared: new Shared(clock), last: Promise.resolve() }
  apps.set(key, app)
  const { shared, last } = app
  const relay = new Relay(shared, { ...options, clock })
  const { logger, files, retention, recordContent: content } = options
  const isLoaded = (): boolean => isDatabaseLoaded(unwrap(ctx.registry))
  let isDisposed = false
  let isInMemory = false
  const inMemory = (): void => {
    if (isInMemory) return
    isInMemory = true
    relay.open({ journal: shared.journal, ownership: new FileOwner(dataDir, clock, logger), isStandIn: isLoaded })
  }
  let hasDatabase = false
  ctx.inject(['database'], inner => {
    hasDatabase = true
    const journal = new DatabaseJournal(inner, {
      clock, logger, files, retention, limit: recordLimit, content, keyLifetime, statementTimeout,
    })
    const ownership = journal.isEmbedded ? new FileOwner(dataDir, clock, logger, journal) : new RowOwner(journal, clock)
    const gone = new AbortController()
    const open = async (): Promise<void> => {
      await last
      for (let isFirst = true; isFirst || !gone.signal.aborted; isFirst = false) {
        try {
          await journal.ping()
          if (!hasDatabase) return
          isInMemory = false
          relay.open({ journal, ownership })
          return
        } catch (error) {
          // A damaged database arrives as well. Until it answers, what needs none is sent.
          if (isFirst) logger.warn('%s', `the database does not answer, nothing that needs it is accepted: ${nameOfError(error)}`)
          if (hasDatabase) inMemory()
        }
        await pause(clock, retryDelay, gone.signal)
      }
    }
    void open()
    inner.on('dispose', () => {
      gone.abort()
      queueMicrotask(() => {
        // With the plugin itself, also where it is only given other settings, the relay has some time to end.
        if (isDisposed) return
        hasDatabase = false
        inMemory()
      })
    })
  })
  ctx.on('ready', () => {
    ctx.setTimeout(() => void last.then(() => {
      if (!hasDatabase) inMemory()
    }), isLoaded() ? arrivalTime : 0)
  })
  const finish = (): Promise<void> => last.then(() => relay.finish())
  const disposed = new Promise<void>(resolve => ctx.on('dispose', () => {
    isDisposed = true
    resolve()
  }))
  app.last = last.then(() => disposed).then(finish)
  return { relay, finish }
}
