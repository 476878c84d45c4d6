import { Driver, type Context } from 'koishi'

type Database = Pick<Context['database'], 'drivers'>

/** Whether a class, by its name, is a driver of a database within this process, whose file no other process may use. */
function isEmbeddedDriver(name: string): boolean {
  return /sqlite|memory/i.test(name)
}

/** Whether a database is within this process. */
export function isEmbedded({ drivers }: Database): boolean {
  return drivers.every(driver => isEmbeddedDriver(driver.constructor.name))
}

/** The drivers that are loaded: right after the start they are, and not yet connected. */
function loadedDrivers(registry: Context['registry']): string[] {
  return [...registry.values()].flatMap(({ plugin }) => typeof plugin === 'function' && plugin.prototype instanceof Driver ? plugin.name : [])
}

/** Whether there is a database, or one that is on its way. */
export function isDatabaseLoaded(registry: Context['registry']): boolean {
  return loadedDrivers(registry).length > 0
}

/** Whether there is a database server, which relays can share, or one that is on its way. */
export function isServerLoaded(registry: Context['registry']): boolean {
  return loadedDrivers(registry).some(name => !isEmbeddedDriver(name))
}

/** How many statements are under way, and what ends the silence. */
const silences = new WeakMap<object, { count: number, restore: () => void }>()

/** Makes a statement, and keeps drivers from writing it to the log where it fails: its values are messages and secrets. */
export async function silently<T>(database: Database, statement: () => Promise<T>): Promise<T> {
  const current = silences.get(database) ?? { count: 0, restore: silence(database) }
  silences.set(database, current)
  current.count++
  try {
    return await statement()
  } finally {
    if (--current.count === 0) {
      silences.delete(database)
      current.restore()
    }
  }
}

/**
 * Keeps statements about this plugin's tables out of the log, until the function returned is called. The loggers are those of `Driver` of
 * minato 3.7.0.
 */
function silence({ drivers }: Database): () => void {
  const restores: (() => void)[] = []
  for (const { logger } of drivers) {
    for (const method of ['warn', 'debug'] as const) {
      const original = logger[method]
      const filtered: typeof original = (...args: [unknown, ...unknown[]]) => {
        if (!args.some(arg => typeof arg === 'string' && arg.includes('message_relay_'))) original(...args)
      }
      logger[method] = filtered
      restores.push(() => {
        // Another plugin may have replaced it since.
        if (logger[method] === filtered) logger[method] = original
      })
    }
  }
  return () => {
    for (const restore of restores) restore()
  }
}
