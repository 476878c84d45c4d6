import { Driver, type Context } from 'koishi'
import { v4 as uuid } from 'uuid'
import { sleep, yieldToOthers } from '../lib/async'
import { unwrap } from '../lib/unwrap'
import type { ParsedItem } from '../message/model'
import type { RecordContent } from './delivery/about'
import type { Delivery } from './delivery/delivery'
import { Backlog } from './sending/backlog'
import type { Queues } from './sending/queue'
import { nameOf, persist, retryDelay, type Runtime } from './sending/runtime'
import type { Worker } from './sending/worker'
import { Archive } from './store/archive'
import type { Reading } from './store/clock'
import { DatabaseStore } from './store/database-store'
import { createLocalLeases, DatabaseLeases, type Leases } from './store/lease'
import type { MemoryStore } from './store/memory-store'
import { lowestId, type Store } from './store/store'

/** How often work is looked for that came from another relay, in milliseconds. */
const sharedInterval = 1_000
/** The same where there is no other relay: only in case something was missed. */
const localInterval = 30_000
/** How often it is looked whose time is over, in milliseconds. */
const expiryInterval = 5_000
/** How often records that are too old are removed, in milliseconds. */
const purgeInterval = 60_000
/** How long what has ended waits to be written, so that much is written at once, in milliseconds. What is left over waits twice. */
const writeInterval = 450
/** How long a stop waits for what is still to be written, in milliseconds. */
const lastWriteTime = 400
/** The name of the lease of the relay that keeps the time. */
const timeLease = 'clock'
/** How long a database may take to be there after the relay was loaded, in milliseconds. */
const arrivalTime = 2_000

export interface StorageOptions {
  queues: Queues
  worker: Worker
  /** What ends in it is written behind the sends. */
  memory: MemoryStore
  runtime: Runtime
  /** Told what another process has left without an answer. */
  onFound: (delivery: Delivery, store: Store, items: readonly ParsedItem[]) => void
}

/** How long records are kept, and what of them. */
export interface Keeping {
  /** In milliseconds. */
  retention: number
  /** How long a key is good, in milliseconds. */
  keyLifetime: number
  /** How many, at most. */
  limit: number
  content: RecordContent
}

/** What there is where there is a database. It is made once for a database, and outlives reloads of the plugin. */
export class Storage {
  readonly store: DatabaseStore
  readonly archive: Archive
  readonly backlog: Backlog
  private readonly owner = uuid()
  private readonly database: Context['database']
  private readonly leases: Leases
  private keeping: Keeping = { retention: Infinity, keyLifetime: Infinity, limit: Infinity, content: 'preview' }
  /** Up to which ID it is forgotten what was to be sent, where the setting says so; `undefined` when it is of all. */
  private forgotten: string | undefined = ''
  private isKnown = false
  private isInTime = false
  /** What the clock showed when it was written down here last. */
  private written: Reading | undefined

  /** @param ctx a context with the database */
  constructor(ctx: Context, private readonly options: StorageOptions) {
    this.database = unwrap(ctx.database)
    const store = this.store = new DatabaseStore(ctx, options.runtime.clock, this.owner)
    this.archive = new Archive(ctx, store.content)
    // Whoever reads in a record that something was sent has to find it in the sent log, too.
    this.archive.beforeWrite = () => this.options.runtime.sentLog.flush()
    const isLocal = ctx.database.drivers.every(driver => /sqlite|memory/i.test(driver.constructor.name))
    this.leases = isLocal ? createLocalLeases(() => store.otherOwners()) : new DatabaseLeases(ctx, this.owner)
    this.backlog = new Backlog({ ...options, store, leases: this.leases })
  }

  /**
   * Goes on with what waits in the database, and keeps it in order until the context is disposed.
   *
   * @param keeping may differ from the one before
   */
  attach(ctx: Context, keeping: Keeping): void {
    const { backlog, leases, options: { runtime } } = this
    ctx.on('dispose', silenceStatements(this.database))
    this.keeping = keeping
    this.forgotten = ''
    const { content } = keeping
    this.store.keeps = state => content === 'full' || state === 'unanswered' || (content === 'preview' && state !== 'sent')
    this.writeBehind(ctx)
    leases.keep(ctx)
    backlog.open(() => this.learn())
    const every = (interval: number, what: string, work: () => Promise<void>): void => {
      let isRunning = false
      const run = async (): Promise<void> => {
        if (isRunning || runtime.isPaused) return
        isRunning = true
        await work().catch((error: unknown) => {
          runtime.logger.warn('%s', `${what} failed: ${nameOf(error)}`)
        })
        isRunning = false
      }
      ctx.setInterval(() => void run(), interval)
      void run()
    }
    every(leases.isShared ? sharedInterval : localInterval, 'looking for what waits', async () => {
      await backlog.opened
      await this.store.removeDiscarded().catch(() => undefined)
      await backlog.scan()
      await this.takeOver()
    })
    every(expiryInterval, 'dropping what is too late', async () => {
      if (!this.isKnown) return
      await this.keepTime()
      await backlog.expireOverdue()
    })
    every(purgeInterval, 'removing old records', async () => {
      if (!this.isKnown) return
      await this.purge()
    })
    const unwatch = runtime.port.onOnline(sid => backlog.wake(sid))
    ctx.on('dispose', unwatch)
  }

  /** Writes what is left to be written, within a short time; also after the context is disposed. */
  async finish(): Promise<void> {
    const { archive, options: { memory } } = this
    if (memory.unwrittenCount === 0) return
    const isDone = new AbortController()
    const restore = silenceStatements(this.database)
    const write = archive.write(memory, this.keeping.limit).catch(() => undefined).finally(() => {
      isDone.abort()
      restore()
    })
    await Promise.race([write, sleep(lastWriteTime, isDone.signal)])
  }

  /** Has what ends in memory written a little later, or at once where it is much. */
  private writeBehind(ctx: Context): void {
    const { archive, options: { memory, runtime } } = this
    let state: 'idle' | 'waiting' | 'busy' = 'idle'
    let hasFailed = false
    let cancel: () => void = () => undefined
    const write = async (): Promise<void> => {
      state = 'busy'
      try {
        await archive.write(memory, this.keeping.limit, 'later')
        hasFailed = false
      } catch (error) {
        if (!hasFailed) runtime.logger.warn('%s', `writing records failed: ${nameOf(error)}`)
        hasFailed = true
      }
      state = 'idle'
      if (memory.unwrittenCount > 0) wait()
    }
    const wait = (): void => {
      // The context is disposed.
      if (memory.onUnwritten !== wait) return
      const isUrgent = !hasFailed && memory.isFull
      if (state === 'busy' || (state === 'waiting' && !isUrgent)) return
      cancel()
      state = isUrgent ? 'busy' : 'waiting'
      cancel = ctx.setTimeout(() => void write(), isUrgent ? 0 : hasFailed ? retryDelay : writeInterval)
    }
    memory.onUnwritten = wait
    if (memory.unwrittenCount > 0) wait()
    ctx.on('dispose', () => {
      if (memory.onUnwritten === wait) memory.onUnwritten = () => undefined
    })
  }

  private async purge(): Promise<void> {
    const { store, archive, leases, keeping: { retention, keyLifetime, limit, content }, options: { runtime } } = this
    const { clock } = runtime
    const time = clock.now() - retention
    const steps = [
      () => store.purge(time),
      () => archive.purge(lowestId(clock.toWall(time))),
      () => store.purgeBeyond(limit, clock.toWall(clock.now() - keyLifetime)),
    ]
    for (const step of steps) while (!runtime.isPaused && await step()) await yieldToOthers()
    if (leases.isShared) archive.recount()
    if (content === 'none') {
      await store.forgetUnanswered()
      await this.forgetKept()
    }
    await store.removeOrphans(ids => archive.withContent(ids))
  }

  /** Forgets what was kept of what was to be sent before the setting said otherwise. */
  private async forgetKept(): Promise<void> {
    const { store, archive, options: { runtime } } = this
    while (!runtime.isPaused && await archive.forgetContent()) await yieldToOthers()
    while (!runtime.isPaused && this.forgotten !== undefined) {
      this.forgotten = await store.forgetEnded(this.forgotten)
      await yieldToOthers()
    }
  }

  /** Whether other relays may use the same database. */
  get isShared(): boolean {
    return this.leases.isShared
  }

  /** Whether what a caller waits for may be sent: otherwise another relay may take this one for dead. */
  isAlive(): boolean {
    return this.leases.isAlive()
  }

  /**
   * After which time it is known what became of a delivery that another process had under way, if that is dead; in milliseconds, 0 when
   * it is.
   */
  async lifeOf(id: string): Promise<number> {
    const owner = await this.store.ownerOf(id)
    return owner === undefined || owner === this.owner ? 0 : this.leases.lifeOf(owner)
  }

  /** Settles what dead relays have left as far as their callers waited for it, and has looked for what went unanswered. */
  private async takeOver(): Promise<void> {
    const { store, leases, options: { onFound, runtime: { openCalls } } } = this
    for (const owner of await leases.others()) {
      if (await leases.lifeOf(owner) > 0) continue
      for (const id of await store.takeOver(owner)) {
        const found = await store.getQueued(id)
        if (!found) continue
        const { delivery, items } = found
        // A relay that has just died may have made the call just now; what an earlier process left counts from the start of this one.
        if (leases.isShared) openCalls.find(delivery, items)
        onFound(delivery, store, items)
        await yieldToOthers()
      }
      await leases.bury(owner)
    }
  }

  /** One relay keeps the time for all that share the database, and across restarts; the others go by its clock. */
  private async keepTime(): Promise<void> {
    const { store, leases, options: { runtime: { clock } } } = this
    clock.follow()
    const isKeeper = await leases.acquire(timeLease)
    if (!isKeeper || !this.isInTime) {
      const present = await store.readClock()
      if (present && isKeeper) clock.resume(present)
      else if (present) clock.adopt(present)
      this.isInTime = true
    }
    const { written } = this
    if (!isKeeper || (written && !leases.isShared && !clock.differs(written))) return
    this.written = clock.read()
    await store.writeClock(this.written)
  }

  /** Settles once what an earlier process left. */
  private async learn(): Promise<void> {
    if (this.isKnown) return
    const { leases, options: { runtime } } = this
    await persist(runtime, () => leases.announce())
    await persist(runtime, () => this.keepTime())
    await persist(runtime, () => this.takeOver())
    this.isKnown = true
  }
}

/** Whether there is a database, or one that is on its way: right after the start its driver is loaded and not yet connected. */
export function isDatabaseLoaded(registry: Context['registry']): boolean {
  return [...registry.values()].some(({ plugin }) => typeof plugin === 'function' && plugin.prototype instanceof Driver)
}

/** Resolves when the database is there, has not come in its time, or the context is disposed. */
export function awaitDatabase(ctx: Context): Promise<void> {
  const isDone = new AbortController()
  const end = (): void => isDone.abort()
  ctx.inject(['database'], end)
  ctx.on('dispose', end)
  return sleep(arrivalTime, isDone.signal)
}

/**
 * Keeps the statements about this plugin's tables out of the log, until the function returned is called: the drivers write each one that
 * fails there with its values, and so with the messages in it. The loggers are those of `Driver` of minato 3.7.0.
 */
function silenceStatements({ drivers }: Context['database']): () => void {
  const restores: (() => void)[] = []
  for (const { logger } of drivers) {
    for (const method of ['warn', 'debug'] as const) {
      const original = logger[method]
      const filtered: typeof original = (...args: [unknown, ...unknown[]]) => {
        if (!args.some(arg => typeof arg === 'string' && arg.includes('message_relay_'))) original(...args)
      }
      logger[method] = filtered
      restores.push(() => {
        // Somebody else may have come after.
        if (logger[method] === filtered) logger[method] = original
      })
    }
  }
  return () => {
    for (const restore of restores) restore()
  }
}
