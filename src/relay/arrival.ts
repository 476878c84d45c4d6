import { Driver, type Context } from 'koishi'
import { sleep } from './patience'

/** How long a database may take to be there after the relay was loaded, in milliseconds. */
const patience = 2_000

/** Whether there is a database, or one that is on its way: right after the start its driver is loaded and not yet connected. */
export function isDatabaseLoaded(ctx: Context): boolean {
  return [...ctx.registry.values()].some(({ plugin }) => typeof plugin === 'function' && plugin.prototype instanceof Driver)
}

/** Resolves when the database is there, has not come in its time, or the relay stops. */
export function awaitDatabase(ctx: Context, stop: AbortSignal): Promise<void> {
  const there = new Promise<void>(resolve => {
    ctx.inject(['database'], () => resolve())
  })
  return Promise.race([there, sleep(patience, stop)])
}
