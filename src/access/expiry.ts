import type { Context } from 'koishi'
import type { Warn } from '../lib/log'
import { day } from '../lib/time'
import { say, type Text } from '../texts/text'

/** How long before its expiry the log warns about a key, in milliseconds. */
const notice = 7 * day
/** How long after the start the keys are first checked, in milliseconds: by then, the made keys are loaded. */
const firstLook = 5_000

const pattern = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:\d\d)?)?$/i

/**
 * Reads the expiry of a key: a date, which is the last valid day, or a date-time. The time zone of the process applies by default.
 *
 * @returns the first moment after the end, in milliseconds since the epoch; `undefined` for anything else, such as a 30 February
 */
export function parseExpiry(value: unknown): number | undefined {
  if (typeof value !== 'string') return
  const [, year, month, date, time, zone = ''] = pattern.exec(value.trim()) ?? []
  const midnight = new Date(Number(year), Number(month) - 1, Number(date))
  if (midnight.getMonth() !== Number(month) - 1) return
  const moment = time === undefined ? midnight.setDate(midnight.getDate() + 1) : Date.parse(`${year}-${month}-${date}T${time}${zone.toUpperCase()}`)
  return Number.isNaN(moment) ? undefined : moment
}

/** A key and its expiry, in milliseconds since the epoch; absent for never. */
interface Expiring { name: string, expires?: number }

/** Warns about keys that have expired or expire within a week: after the start, and then daily until the context is disposed. */
export function announceExpiry(ctx: Pick<Context, 'setTimeout' | 'setInterval'>, keys: () => readonly Expiring[], warn: Warn): void {
  const announce = (): void => warn('expiry', describeExpiry(keys(), Date.now()))
  ctx.setTimeout(announce, firstLook)
  ctx.setInterval(announce, day)
}

/** @param now in milliseconds since the epoch */
export function describeExpiry(keys: readonly Expiring[], now: number): Text[] {
  return keys.flatMap(({ name, expires = Infinity }) => {
    if (expires - now >= notice) return []
    return say(expires > now ? 'key-expires-at' : 'key-expired-at', { name: JSON.stringify(name), time: new Date(expires).toISOString() })
  })
}
