import { demand } from '../errors'
import { isObject, withoutNull, type JsonObject } from '../lib/shape'
import { day, hour, parseDuration, parseTime } from '../lib/time'
import { readList, refuseFields } from '../lib/words'
import { instantOf, isZone, localTime, ownZone } from '../message/quiet'
import { toName } from '../message/target'
import { say } from '../texts/text'

/** People who take turns. Times are in milliseconds. */
export interface Rota {
  readonly people: readonly string[]
  /** How long a turn is, on the clocks of the zone. */
  readonly every: number
  /** When a turn of the first one begins. */
  readonly from: number
  /** The IANA name of the time zone. */
  readonly zone: string
}

/** Somebody takes over for a time. */
export interface Swap { readonly from: number, readonly until: number, readonly who: string }

const longest = 366 * day
const mostPeople = 100

/**
 * Reads a rota.
 *
 * @param isPerson absent if the people are not checked
 * @throws RelayError `bad-request`, which names the field
 */
export function parseRota(value: unknown, isPerson?: (word: string) => boolean): Rota {
  demand(isObject(value), say('rota-object', { example: '{people: [li-lei, han-mei], every: 1w, from: "2026-11-30T09:00+08:00"}' }))
  const { people: written, every: length, from, zone, ...others } = withoutNull(value)
  refuseFields('rotas', Object.keys(others))
  const people = (readList(written) ?? []).map(toName)
  demand(people.length > 0 && people.length <= mostPeople, say('people-list', { most: mostPeople }))
  for (const person of people) demandPerson('people', person, isPerson)
  const every = parseDuration(length)
  demand(every !== undefined && every >= hour && every <= longest, say('every-duration'))
  demand(zone === undefined || (typeof zone === 'string' && isZone(zone)), say('zone-name'))
  return { people, every, from: readStart(from, zone), zone: zone ?? ownZone() }
}

/** @param zone the zone of a time without an offset */
function readStart(value: unknown, zone: string | undefined): number {
  const text = typeof value === 'string' ? value.trim() : ''
  const local = zone === undefined ? NaN : parseTime(`${text}Z`)
  const at = zone === undefined || Number.isNaN(local) ? parseTime(text) : instantOf(local, zone, local - day)
  demand(!Number.isNaN(at), say('time-with-offset-or-zone', { field: 'from' }))
  return at
}

/** Reads a swap. @throws RelayError `bad-request`, which names the field */
export function parseSwap({ from, until, who, ...others }: JsonObject, isPerson: (word: string) => boolean, now: number): Swap {
  refuseFields('swaps', Object.keys(others))
  const [begin, end] = [from, until].map(time => typeof time === 'string' ? parseTime(time.trim()) : NaN)
  demand(begin !== undefined && !Number.isNaN(begin), say('time-with-offset', { field: 'from' }))
  demand(end !== undefined && !Number.isNaN(end), say('time-with-offset', { field: 'until' }))
  demand(end > begin && end > now, say('until-after-from'))
  demand(typeof who === 'string', say('who-is-person'))
  demandPerson('who', toName(who), isPerson)
  return { from: begin, until: end, who: toName(who) }
}

function demandPerson(field: string, word: string, isPerson: ((word: string) => boolean) | undefined): void {
  demand(!isPerson || isPerson(word), say('no-person', { field, name: JSON.stringify(word) }))
}

/**
 * Who has a rota, and until when.
 *
 * @param swaps in the order in which they were made: the latest counts
 * @returns without an end if nobody else ever has it
 */
export function onDuty(rota: Rota, swaps: readonly Swap[], at: number): { who: string, until?: number } {
  const { who, end } = turnAt(rota, swaps, at)
  let until = end
  // The next turn may be that of the same person.
  for (let more = rota.people.length + 2 * swaps.length; more > 0; more--) {
    const next = turnAt(rota, swaps, until)
    if (next.who !== who) return { who, until }
    until = next.end
  }
  return { who }
}

/** Who has a rota, and when that has to be looked up again. */
function turnAt(rota: Rota, swaps: readonly Swap[], at: number): { who: string, end: number } {
  const swap = swaps.findLast(({ from, until }) => from <= at && at < until)
  const changes = swaps.flatMap(({ from, until }) => [from, until]).filter(time => time > at)
  if (swap) return { who: swap.who, end: Math.min(...changes) }
  const { people, every, from, zone } = rota
  const first = localTime(from, zone)
  const begin = (turn: number): number => instantOf(first + turn * every, zone, first + turn * every - day)
  // Clocks that were put back show less than what has passed, by no more than a turn.
  let turn = Math.floor((localTime(at, zone) - first) / every) + 1
  while (begin(turn) > at) turn--
  return { who: people.at(turn % people.length) ?? '', end: Math.min(begin(turn + 1), ...changes) }
}
