import { v7 as uuid } from 'uuid'
import type { Address, Target } from '../../message/model'
import { platformOf, writeTarget } from '../../message/target'
import type { Value } from '../store/store'
import type { Delivery, State } from './delivery'
import { writeCaller } from './row'
import { wordsOf } from './summary'

/** Selects deliveries. */
export interface Filter {
  /** Their states. */
  states?: readonly State[]
  /** Their targets, each on its platform if it has one. */
  targets?: readonly (Target & Pick<Address, 'platform'>)[]
  /** The `sid` of their bot. */
  bot?: string
  /** As `ThreadLink.name`. */
  thread?: string
  /** The name of the caller's API key. */
  caller?: string
  /** A door, or a group of doors, such as `hooks`. */
  door?: string
  /** A part of the start of their texts. The case of ASCII letters does not count. */
  text?: string
  /** The first time of acceptance, and the end of the span, in milliseconds since the epoch. */
  since?: number
  until?: number
  /** Older than the delivery with this ID. */
  before?: string
}

/** Selects deliveries, in an order. */
export interface ListFilter extends Filter {
  /** `asc` for the oldest first; otherwise the newest come first. */
  order?: 'asc' | 'desc'
  limit: number
}

/** Sorts after every ID. */
const lastId = 'g'

/** The lowest possible ID of a delivery accepted at a time in milliseconds since the epoch. */
export function lowestId(time: number): string {
  return time === Infinity ? lastId : uuid({ msecs: Math.max(Math.ceil(time), 0), seq: 0, random: new Uint8Array(16) })
}

/** The time of an ID, in milliseconds since the epoch (RFC 9562, section 5.7). */
function timeOf(id: string): number {
  return parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

/** The IDs of a filter: from the first one up to, and without, the second. */
export function rangeOf({ since = 0, until = Infinity, before = lastId }: Filter): [from: string, to: string] {
  const last = lowestId(until)
  return [lowestId(since), before < last ? before : last]
}

/** Whether a filter asks for something that has no index. */
export function isUnindexed({ text, door }: Filter): boolean {
  return (text ?? door) !== undefined
}

/** The conditions of a filter in SQL, except the range of its IDs, with their values. */
export function conditionsOf({ states, targets, bot, thread, caller, door, text }: Filter): { sql: string, values: Value[] } {
  const parts: string[] = []
  const values: Value[] = []
  const add = (sql: string, ...more: readonly Value[]): void => {
    parts.push(` AND ${sql}`)
    values.push(...more)
  }
  if (states) add('state IN (SELECT value FROM json_each(?))', JSON.stringify(states))
  if (targets) {
    add('target IN (SELECT value FROM json_each(?))', JSON.stringify(targets.map(writeTarget)))
    const chats = targets.map(({ platform, ...target }) => [writeTarget(target), platform ?? null])
    // A delivery that never had a bot is on every platform.
    if (chats.some(([, platform]) => platform !== null)) {
      add(`(bot = '' OR EXISTS (SELECT 1 FROM json_each(?) AS chat WHERE chat.value ->> 0 = target
        AND (chat.value ->> 1 IS NULL OR substr(bot, 1, instr(bot, ':') - 1) = chat.value ->> 1)))`, JSON.stringify(chats))
    }
  }
  if (bot !== undefined) add('bot = ?', bot)
  if (thread !== undefined) add('thread = ?', thread)
  if (caller !== undefined) add('caller = ?', writeCaller(caller))
  // In ASCII, `0` follows `/`.
  if (door !== undefined) add('(door = ? OR (door > ? AND door < ?))', door, `${door}/`, `${door}0`)
  // The text as it stands in the JSON of a summary, where it is also that of other fields: `matches` looks closer.
  if (text !== undefined) add('instr(lower(summary), ?) > 0', lowerCase(JSON.stringify(text).slice(1, -1)))
  return { sql: parts.join(''), values }
}

/** Whether a delivery matches a filter. */
export function matches({ id, state, target, bot, caller, door, flow, summary }: Delivery, filter: Filter): boolean {
  const isTo: NonNullable<Filter['targets']>[number] = { ...target, platform: platformOf(bot) }
  return holds(filter.since, since => timeOf(id) >= since)
    && holds(filter.until, until => timeOf(id) < until)
    && holds(filter.states, states => states.includes(state))
    && holds(filter.targets, targets => targets.some(each => each.kind === isTo.kind && each.id === isTo.id
      && holds(each.platform, platform => holds(isTo.platform, own => own === platform))))
    && holds(filter.bot, sid => sid === bot)
    && holds(filter.thread, name => name === flow.thread?.name)
    && holds(filter.caller, name => name === caller)
    && holds(filter.door, name => door === name || door.startsWith(`${name}/`))
    && holds(filter.before, before => id < before)
    && holds(filter.text, text => lowerCase(wordsOf(summary)).includes(lowerCase(text)))
}

/** Applies the order and the limit of a filter. */
export function cutList(deliveries: readonly Delivery[], { order, limit }: Pick<ListFilter, 'order' | 'limit'>): Delivery[] {
  const sign = order === 'asc' ? 1 : -1
  return deliveries.toSorted((a, b) => a.id < b.id ? -sign : sign).slice(0, limit)
}

/** Whether a value meets a condition; `true` without a condition. */
function holds<T>(wanted: T | undefined, condition: (wanted: T) => boolean): boolean {
  return wanted === undefined || condition(wanted)
}

/** Lowers ASCII letters only, as SQLite does: other characters may change their length. */
function lowerCase(text: string): string {
  return text.replace(/[A-Z]+/g, letters => letters.toLowerCase())
}
