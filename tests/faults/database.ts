import type { Context } from 'koishi'

/** From now on, the n-th statement of a kind fails, and so do the `times` - 1 statements after it. */
export interface DatabaseFault {
  statement: 'create' | 'set' | 'get'
  nth: number
  times: number
}

/** Makes single statements of a database fail. */
export class FaultyDatabase {
  /** The number of failed statements. */
  hits = 0
  private live: { fault: DatabaseFault, seen: number }[] = []

  /** @param app an app with a database */
  constructor(app: Context) {
    for (const driver of app.database.drivers) {
      // The journal and the driver change rows of SQLite with this method.
      const run: unknown = Reflect.get(driver, '_run')
      if (typeof run === 'function') {
        Reflect.set(driver, '_run', (...args: [string, ...unknown[]]): unknown => {
          if (args[0].startsWith('UPDATE') && this.strikes('set')) throw new Error('the database is away')
          const ran: unknown = Reflect.apply(run, driver, args)
          return ran
        })
      }
      for (const method of ['get', 'eval', 'create', 'remove', ...typeof run === 'function' ? [] : ['set'] as const] as const) {
        const original: unknown = Reflect.get(driver, method)
        if (typeof original !== 'function') throw new Error(`the driver has no ${method}`)
        Reflect.set(driver, method, async (...args: unknown[]): Promise<unknown> => {
          if (this.strikes(method)) throw new Error('the database is away')
          const result: unknown = await Reflect.apply(original, driver, args)
          return result
        })
      }
    }
  }

  /** Replaces the planned faults. */
  plan(faults: readonly DatabaseFault[]): void {
    this.live = faults.map(fault => ({ fault, seen: 0 }))
  }

  private strikes(method: string): boolean {
    const statement = method === 'eval' ? 'get' : method === 'remove' ? 'set' : method
    let isHit = false
    for (const entry of this.live) {
      const { fault: { statement: wanted, nth, times } } = entry
      if (wanted !== statement) continue
      entry.seen++
      if (entry.seen >= nth && entry.seen < nth + times) isHit = true
    }
    if (isHit) this.hits++
    return isHit
  }
}
