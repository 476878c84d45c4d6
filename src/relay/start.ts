import type { Context } from 'koishi'
import { loadedPlaces, placesOf, unwrap } from '../lib/koishi'
import { pause, systemClock } from './clock'
import { nameOfError } from './journal'
import { DatabaseJournal, type JournalOptions } from './journal-database'
import { FileOwner, RowOwner } from './owner'
import { Relay, Shared, type DataStore, type RelayOptions } from './relay'

export interface StartOptions extends Omit<RelayOptions & JournalOptions, 'clock'> {
  /** The data folder, absolute. */
  dataDir: string
}

/** How long a database may take to arrive after the relay was loaded, in milliseconds. */
const arrivalTime = 2_000

/** The wait before a silent database is asked again, in milliseconds. */
const retryDelay = 1_000

/** The shared state of an app's relays, and the end of the last one. */
const apps = new WeakMap<object, { shared: Shared, last: Promise<void> }>()

/**
 * Starts the relay of an app: with the database of the bot, or else in memory. After a reload of the plugin, it starts once the earlier
 * relay has ended, and shares that one's memory.
 *
 * @returns the relay, and a promise that resolves once it and the earlier ones have ended
 */
export function startRelay(ctx: Context, started: StartOptions): { relay: Relay, ended: Promise<void> } {
  const { dataDir, logger } = started
  const app = appOf(ctx)
  const { shared, last } = app
  const relay = new Relay(shared, { ...started, clock: systemClock })
  const ended = app.last = last.then(() => relay.ended)
  let isDisposed = false
  ctx.on('dispose', () => void (isDisposed = true))
  const isLoaded = (): boolean => loadedPlaces(unwrap(ctx.registry)).some(place => place !== 'memory')
  const memory: DataStore = { journal: shared.journal, ownership: new FileOwner(dataDir, systemClock, logger), isStandIn: isLoaded }
  let hasDatabase = false
  ctx.inject(['database'], inner => {
    if (placesOf(unwrap(inner.database)).every(place => place === 'memory')) return
    hasDatabase = true
    const gone = new AbortController()
    const database = databaseOf(inner, started)
    void last.then(() => openDatabase(relay, database, memory, logger, gone.signal))
    inner.on('dispose', () => {
      gone.abort()
      hasDatabase = false
      // If the plugin is disposed as well, also for new settings, the relay keeps its store until it has ended.
      queueMicrotask(() => isDisposed || relay.open(memory))
    })
  })
  ctx.on('ready', () => {
    ctx.setTimeout(() => void last.then(() => hasDatabase || relay.open(memory)), isLoaded() ? arrivalTime : 0)
  })
  return { relay, ended }
}

function appOf(ctx: Context): { shared: Shared, last: Promise<void> } {
  const key = unwrap(ctx.root)
  const app = apps.get(key) ?? { shared: new Shared(systemClock), last: Promise.resolve() }
  apps.set(key, app)
  return app
}

function databaseOf(ctx: Context, options: StartOptions): DataStore {
  const { dataDir, logger } = options
  const journal = new DatabaseJournal(ctx, { ...options, clock: systemClock })
  const ownership = journal.isEmbedded ? new FileOwner(dataDir, systemClock, logger, journal) : new RowOwner(journal, systemClock)
  return { journal, ownership }
}

/** Opens a database once it answers, unless it is gone by then. Until then, the relay works in memory: the database may be damaged. */
async function openDatabase(
  relay: Relay, database: DataStore, memory: DataStore, logger: StartOptions['logger'], gone: AbortSignal,
): Promise<void> {
  const isGone = (): boolean => gone.aborted
  for (let isFirst = true; !isGone(); isFirst = false) {
    const failure = await database.journal.ping().then(() => undefined, nameOfError)
    if (isFirst && failure !== undefined) logger.warn('%s', `the database does not answer, nothing that needs it is accepted: ${failure}`)
    if (!isGone()) relay.open(failure === undefined ? database : memory)
    if (failure === undefined && !isFirst) logger.info('the database answers')
    if (failure === undefined) return
    await pause(systemClock, retryDelay, gone)
  }
}
