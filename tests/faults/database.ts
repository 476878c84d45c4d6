import type { Context } from 'koishi'
import type { DatabaseFault } from './plan'

/** Makes single statements of a database fail. */
export class FaultyDatabase {
  /** How many statements failed. */
  hits = 0
  private live: { fault: DatabaseFault, seen: number }[] = []

  /** @param app an app whose database is there */
  constructor(app: Context) {
    for (const driver of app.database.drivers) {
      for (const method of ['get', 'eval', 'set', 'create', 'remove'] as const) {
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

  /** From now on these, and no others, fail. */
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
