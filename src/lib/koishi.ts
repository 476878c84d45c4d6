import { Driver, type Context } from 'koishi'

const original: unique symbol = Symbol.for('cordis.original')

interface Traced<T> {
  /** The object behind a tracing proxy: `symbols.original` of @cordisjs/core 3.18.1. */
  readonly [original]?: T & Traced<T>
}

/**
 * The object behind Cordis' tracing proxies, which may be nested, or the object itself. A property read through a proxy costs microseconds,
 * and makes a send three times as slow.
 */
export function unwrap<T extends object>(value: T & Traced<T>): T {
  const { [original]: inner } = value
  return inner ? unwrap(inner) : value
}

type Database = Pick<Context['database'], 'drivers'>

/** The storage of a driver, by its class name: `memory` is lost with the process, and no other process may use a `file`. */
function placeOf(driver: string): 'memory' | 'file' | 'server' {
  return /memory/i.test(driver) ? 'memory' : /sqlite/i.test(driver) ? 'file' : 'server'
}

/** The storage of each driver of a database. For the relay, `memory` does not count as a database. */
export const placesOf = ({ drivers }: Database): string[] => drivers.map(driver => placeOf(driver.constructor.name))

/** The storage of each loaded driver. Right after the start, drivers are loaded but not connected yet. */
export function loadedPlaces(registry: Context['registry']): string[] {
  return [...registry.values()].flatMap(({ plugin }) => typeof plugin === 'function' && plugin.prototype instanceof Driver ? placeOf(plugin.name) : [])
}

/** The number of running statements per database, and the functions that restore its loggers. */
const silences = new WeakMap<object, { count: number, restores: (() => void)[] }>()

/** Runs a statement, and keeps drivers from logging it if it fails, because its values are messages and secrets. */
export async function silently<T>(database: Database, statement: () => Promise<T>): Promise<T> {
  const silence = silences.get(database) ?? {
    count: 0, restores: database.drivers.flatMap(({ logger }) => [mute(logger, 'warn'), mute(logger, 'debug')]),
  }
  silences.set(database, silence)
  silence.count++
  try {
    return await statement()
  } finally {
    if (--silence.count === 0) {
      silences.delete(database)
      for (const restore of silence.restores) restore()
    }
  }
}

/** Keeps statements about this plugin's tables out of the log of a `Driver` of minato 3.7.0. @returns a function that ends this */
function mute(logger: Driver['logger'], method: 'warn' | 'debug'): () => void {
  const log = logger[method]
  const muted: typeof log = (...args: [unknown, ...unknown[]]) => {
    if (!args.some(arg => typeof arg === 'string' && arg.includes('message_relay_'))) log(...args)
  }
  logger[method] = muted
  return () => {
    // Another plugin may have replaced the method since.
    if (logger[method] === muted) logger[method] = log
  }
}
