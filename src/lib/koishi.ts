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

/** Where a driver, by the name of its class, keeps its data: in a file, which no other process may use, or until this process ends. */
function placeOf(driver: string): 'memory' | 'file' | 'server' {
  return /memory/i.test(driver) ? 'memory' : /sqlite/i.test(driver) ? 'file' : 'server'
}

/** Where the drivers of a database keep their data. One that ends with this process is none for the relay. */
export const placesOf = ({ drivers }: Database): string[] => drivers.map(driver => placeOf(driver.constructor.name))

/** The same of the drivers that are loaded: right after the start they are there, and not yet connected. */
export function loadedPlaces(registry: Context['registry']): string[] {
  return [...registry.values()].flatMap(({ plugin }) => typeof plugin === 'function' && plugin.prototype instanceof Driver ? placeOf(plugin.name) : [])
}

/** How many statements are under way, and what ends the silence. */
const silences = new WeakMap<object, { count: number, restores: (() => void)[] }>()

/** Makes a statement, and keeps drivers from writing it to the log where it fails: its values are messages and secrets. */
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

/** Keeps statements about this plugin's tables out of a log of `Driver` of minato 3.7.0. Returns what ends that. */
function mute(logger: Driver['logger'], method: 'warn' | 'debug'): () => void {
  const heard = logger[method]
  const muted: typeof heard = (...args: [unknown, ...unknown[]]) => {
    if (!args.some(arg => typeof arg === 'string' && arg.includes('message_relay_'))) heard(...args)
  }
  logger[method] = muted
  return () => {
    // Another plugin may have replaced it since.
    if (logger[method] === muted) logger[method] = heard
  }
}
