import type { Context, Logger } from 'koishi'

const day = 24 * 60 * 60 * 1000
/** How long before its end the log warns about a key, in milliseconds. */
const notice = 7 * day
/** How long after the start the keys are first looked at, in milliseconds: by then those are known that were made while the relay ran. */
const firstLook = 5_000

const pattern = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:\d\d)?)?$/i

/**
 * Reads the end of a key: a date, whose last day counts, or a date-time, both in the time zone of the process unless they name one.
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

/** A key with its end, in milliseconds since the epoch; absent for none. */
interface Ending { name: string, expires?: number }

/** Warns after the start and then once a day, until the context is disposed, about keys that end within a week or have ended. */
export function announceExpiry(ctx: Pick<Context, 'setTimeout' | 'setInterval'>, keys: () => readonly Ending[], logger: Pick<Logger, 'warn'>): void {
  const announce = (): void => {
    for (const line of describeExpiry(keys(), Date.now())) logger.warn('%s', line)
  }
  ctx.setTimeout(announce, firstLook)
  ctx.setInterval(announce, day)
}

/** @param now in milliseconds since the epoch */
export function describeExpiry(keys: readonly Ending[], now: number): string[] {
  return keys.flatMap(({ name, expires = Infinity }) => {
    if (expires - now >= notice) return []
    const verb = expires > now ? 'expires' : 'expired'
    return `the key ${JSON.stringify(name)} ${verb} at ${new Date(expires).toISOString()}: give its callers a new key`
  })
}
