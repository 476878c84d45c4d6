import type { Context, Logger } from 'koishi'
import type { Caller } from './caller'

const day = 24 * 60 * 60 * 1000
/** How long before its end a key is spoken of, in milliseconds. */
const notice = 7 * day

/**
 * Reads when something ends: a date, to its end in the time zone of the process, or a date-time, in that time zone unless it names one.
 *
 * @returns the first moment after it, in milliseconds since the epoch; `undefined` when it is neither, or there is no such day
 */
export function parseExpiry(value: unknown): number | undefined {
  if (typeof value !== 'string') return
  const [, year, month, date, time, zone = ''] = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:\d\d)?)?$/i.exec(value.trim()) ?? []
  const midnight = new Date(Number(year), Number(month) - 1, Number(date))
  if (midnight.getMonth() !== Number(month) - 1) return
  const moment = time === undefined ? midnight.setDate(midnight.getDate() + 1) : Date.parse(`${year}-${month}-${date}T${time}${zone.toUpperCase()}`)
  return Number.isNaN(moment) ? undefined : moment
}

/** A key with an end. */
interface Ending {
  /** In milliseconds since the epoch. */
  expires: number
  caller: Pick<Caller, 'name'>
}

/** Logs once a day, until the context is disposed, which keys end within a week or have ended. */
export function announceExpiry(ctx: Pick<Context, 'setInterval'>, keys: readonly Ending[], logger: Pick<Logger, 'warn'>): void {
  const announce = (): void => {
    for (const line of describeExpiry(keys, Date.now())) logger.warn('%s', line)
  }
  announce()
  ctx.setInterval(announce, day)
}

/** @param now in milliseconds since the epoch */
export function describeExpiry(keys: readonly Ending[], now: number): string[] {
  return keys.filter(({ expires }) => expires - now < notice).map(({ expires, caller: { name } }) => {
    const verb = expires > now ? 'expires' : 'expired'
    return `the key ${JSON.stringify(name)} ${verb} at ${new Date(expires).toISOString()}: put a new one of the same name beside it, and remove this one later`
  })
}
