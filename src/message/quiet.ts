import { day, minute } from '../lib/time'
import type { Quiet } from './model'

/** The formats by time zone, cached: creating one takes longer than using it a hundred times. */
const formats = new Map<string, Intl.DateTimeFormat>()

/**
 * The end of the present quiet hours; `undefined` outside them. If the clocks change meanwhile, the end is by the changed clocks.
 *
 * @param at in milliseconds since the epoch, like the result
 */
export function quietUntil({ from, to, zone }: Quiet, at: number): number | undefined {
  const local = localTime(at, zone)
  const midnight = Math.floor(local / day) * day
  const now = Math.floor((local - midnight) / minute)
  const isQuiet = from < to ? now >= from && now < to : now >= from || now < to
  if (!isQuiet) return
  const end = midnight + to * minute + (now < to ? 0 : day)
  return instantOf(end, zone, at)
}

/** The time on the clocks of a zone, as milliseconds since the epoch that a clock in UTC would show. */
export function localTime(at: number, zone: string): number {
  return at + offsetAt(zone, at)
}

/**
 * When the clocks of a zone show a time: the first time if they show it twice, and after the gap if they skip it.
 *
 * @param local as from `localTime`
 * @param before an earlier moment
 */
export function instantOf(local: number, zone: string, before: number): number {
  // The offset may have changed since. A time that the clocks skip is read with the offset before the change.
  const guess = local - offsetAt(zone, before)
  const corrected = local - offsetAt(zone, guess)
  return offsetAt(zone, corrected) === offsetAt(zone, guess) ? corrected : guess
}

/** A time of the day in a zone, such as `08:00`. */
export function timeOfDay(at: number, zone: string): string {
  return new Date(localTime(at, zone)).toISOString().slice(11, 16)
}

/** Minutes after midnight as a time of the day, such as `08:00`. */
export function writeMinutes(minutes: number): string {
  return new Date(minutes * minute).toISOString().slice(11, 16)
}

/** The time zone of this process. */
export function ownZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone
}

/** Whether there is a time zone of this name. */
export function isZone(zone: string): boolean {
  try {
    formatOf(zone)
    return true
  } catch {
    return false
  }
}

/** The last offset of each zone with its quarter of an hour: clocks change only between quarters. */
const offsets = new Map<string, { quarter: number, offset: number }>()

/** How far a zone is ahead of UTC, in milliseconds. */
function offsetAt(zone: string, at: number): number {
  const quarter = Math.floor(at / (15 * minute))
  const known = offsets.get(zone)
  if (known?.quarter === quarter) return known.offset
  const parts = new Map(formatOf(zone).formatToParts(at).map(({ type, value }) => [type, Number(value)]))
  const of = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0
  const offset = Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute'), of('second')) - Math.floor(at / 1000) * 1000
  offsets.set(zone, { quarter, offset })
  return offset
}

/** @throws RangeError if there is no such zone */
function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone)
  if (known) return known
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric',
  })
  formats.set(zone, format)
  return format
}
