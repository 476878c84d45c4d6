import { toText } from './shape'

/** Spans of time in milliseconds. */
export const minute = 60_000
export const hour = 60 * minute
export const day = 24 * hour

const units: ReadonlyMap<string, number> = new Map([['s', 1_000], ['m', minute], ['h', hour], ['d', day], ['w', 7 * day]])

/**
 * Reads a duration: whole seconds, or a text such as `90s`, `5m`, `4h`, `1d` or `1w`.
 *
 * @returns milliseconds; `undefined` for anything else
 */
export function parseDuration(value: unknown): number | undefined {
  const [, count, unit = 's'] = /^(\d{1,9})([smhdw])?$/.exec(toText(value).trim()) ?? []
  return count === undefined ? undefined : Number(count) * (units.get(unit) ?? 0)
}

/**
 * Reads a date-time with an offset (RFC 3339), also without seconds. A plus sign in a query arrives as a blank.
 *
 * @returns milliseconds since the epoch; `NaN` for any other text
 */
export function parseTime(written: string): number {
  const parts = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(?:([Zz])|([- +])(\d\d:\d\d))$/.exec(written)
  const [, date = '', time = '', zulu, sign = '', offset = ''] = parts ?? []
  return hasDay(date) ? Date.parse(`${date}T${time}${zulu ? 'Z' : sign.replace(' ', '+') + offset}`) : NaN
}

/** A time in milliseconds since the epoch as callers see it. */
export function toIso(time: number): string {
  return new Date(time).toISOString()
}

/** Whether a day exists: `Date` turns 30 February into 2 March. */
function hasDay(date: string): boolean {
  const time = Date.parse(date)
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(date)
}
