import { Driver, type Context } from 'koishi'
import { sleep, yieldToOthers } from '../lib/async'
import { Backlog } from './backlog'
import { DatabaseStore } from './database-store'
import { DatabaseLeases, localLeases, type Leases } from './lease'
import type { Queues } from './queue'
import { nameOf, persist, type Runtime } from './runtime'
import type { Worker } from './worker'

/** How often work is looked for that came from another relay, in milliseconds. */
const sharedInterval = 1_000
/** The same where there is no other relay: only in case something was missed. */
const localInterval = 30_000
/** How often it is looked whose time is over, in milliseconds. */
const expiryInterval = 5_000
/** How often records that are too old are removed, in milliseconds. */
const purgeInterval = 60_000
/** How long a database may take to be there after the relay was loaded, in milliseconds. */
const arrivalTime = 2_000

export interface StorageOptions {
  queues: Queues
  worker: Worker
  runtime: Runtime
}

/** What there is where there is a database. It is made once for a database, and outlives reloads of the plugin. */
export class Storage {
  readonly store: DatabaseStore
  readonly backlog: Backlog
  private readonly leases: Leases
  /** Whether no other relay can use the same database. */
  readonly isLocal: boolean
  private isKnown = false

  /** @param ctx a context with the database */
  constructor(ctx: Context, private readonly options: StorageOptions) {
    this.store = new DatabaseStore(ctx)
    this.isLocal = ctx.database.drivers.every(driver => /sqlite|memory/i.test(driver.constructor.name))
    this.leases = this.isLocal ? localLeases : new DatabaseLeases(ctx)
    this.backlog = new Backlog({ ...options, store: this.store, leases: this.leases })
  }

  /**
   * Goes on with what waits in the database, and keeps it in order until the context is disposed.
   *
   * @param retention how long records are kept, in milliseconds
   */
  attach(ctx: Context, retention: number): void {
    const { backlog, store, isLocal, options: { runtime } } = this
    silenceStatements(ctx)
    this.leases.keep(ctx)
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
    every(isLocal ? localInterval : sharedInterval, 'looking for what waits', () => backlog.opened.then(() => backlog.scan()))
    every(expiryInterval, 'dropping what is too late', () => backlog.expireOverdue())
    every(purgeInterval, 'removing old records', async () => {
      const time = Date.now() - retention
      while (!runtime.isPaused && await store.purge(time)) await yieldToOthers()
    })
    const unwatch = runtime.port.onOnline(sid => backlog.wake(sid))
    ctx.on('dispose', unwatch)
  }

  /** Settles once what an earlier process left. */
  private async learn(): Promise<void> {
    if (this.isKnown) return
    const { store, isLocal, options: { runtime } } = this
    const now = Date.now()
    // Another relay may be at work in a shared database; those deliveries are judged by their age instead.
    if (isLocal) await persist(runtime, () => store.abandonInterrupted(now))
    this.isKnown = true
  }
}

/** Whether there is a database, or one that is on its way: right after the start its driver is loaded and not yet connected. */
export function isDatabaseLoaded(ctx: Context): boolean {
  return [...ctx.registry.values()].some(({ plugin }) => typeof plugin === 'function' && plugin.prototype instanceof Driver)
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
 * Keeps the statements about this plugin's tables out of the log, until the context is disposed: the drivers write each one that fails
 * there with its values, and so with the messages in it.
 */
function silenceStatements(ctx: Context): void {
  for (const { logger } of ctx.database.drivers) {
    for (const method of ['warn', 'debug'] as const) {
      const original = logger[method]
      const filtered: typeof original = (...args: [unknown, ...unknown[]]) => {
        if (!args.some(arg => typeof arg === 'string' && arg.includes('message_relay_'))) original(...args)
      }
      logger[method] = filtered
      ctx.on('dispose', () => {
        // Somebody else may have come after.
        if (logger[method] === filtered) logger[method] = original
      })
    }
  }
}
