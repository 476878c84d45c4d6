import { yieldToOthers } from '../../lib/async'
import { writeTarget } from '../../message/target'
import type { Delivery } from '../delivery/delivery'
import { lowestId, matches, type ListFilter } from './store'
import { writeCaller } from './stored'

/** A part of a table, in the words of its columns. */
export interface Part {
  state?: string | string[]
  target?: string | string[]
  caller?: string
  door?: string | { $gte: string, $lt: string }
  /** In what is told of a delivery; more may match than is meant. */
  text?: string
  id: { $lt: string, $gte?: string }
}

/** A table of deliveries that is listed. */
export interface Listed {
  /** The newest of a part. */
  find(part: Part, limit: number): Promise<Delivery[]>
  /** The ID at this place in a part, counted from the newest. */
  idAt(part: Part, offset: number): Promise<string | undefined>
  /** The first door after this one in the order of the database. */
  doorAfter(door: string): Promise<string | undefined>
}

/** It sorts after every ID. */
export const lastId = 'g'
/** How many rows a statement looks through at most: an embedded database blocks the event loop meanwhile. */
const stretch = 500
/** How many rows are read at least. */
const least = 20

/**
 * Lists the newest deliveries of a table that match. It goes along an index, in which one of the conditions finds what it asks for; what
 * is found there is looked through in stretches as far as there are other conditions.
 */
export async function listNewest(filter: ListFilter, table: Listed): Promise<Delivery[]> {
  const { before = lastId, until, limit } = filter
  const start = until === undefined ? before : [before, lowestId(until)].sort()[0] ?? before
  const found: Delivery[] = []
  for (const lead of await leadsOf(filter, table)) found.push(...await follow(lead, { filter, table, start, limit }))
  return found.sort((a, b) => a.id < b.id ? 1 : -1).slice(0, limit)
}

/** One condition that an index answers, or none. */
interface Lead {
  state?: string
  target?: string
  caller?: string
  door?: string
}

/** The conditions of which one holds for each delivery that matches, and that leave the least to look through. */
async function leadsOf({ states, targets, caller, door }: ListFilter, table: Listed): Promise<Lead[]> {
  // Nearly everything is sent.
  if (states && !states.includes('sent') && caller === undefined) return states.map(state => ({ state }))
  if (targets) return [...new Set(targets.map(writeTarget))].map(target => ({ target }))
  if (caller !== undefined) return [{ caller: writeCaller(caller) }]
  if (door !== undefined) return (await doorsOf(door, table)).map(door => ({ door }))
  return states ? states.map(state => ({ state })) : [{}]
}

/** The doors that a word stands for: itself, or all of a kind. */
async function doorsOf(word: string, table: Listed): Promise<string[]> {
  if (word.includes('/')) return [word]
  const doors = [word]
  const prefix = `${word}/`
  for (let door = await table.doorAfter(prefix); door?.startsWith(prefix); door = await table.doorAfter(door)) doors.push(door)
  return doors
}

interface Walk {
  filter: ListFilter
  table: Listed
  start: string
  limit: number
}

async function follow(lead: Lead, { filter, table, start, limit }: Walk): Promise<Delivery[]> {
  const from = filter.since === undefined ? undefined : lowestId(filter.since)
  const all = { ...conditionsOf(filter), ...lead }
  const isWhole = Object.keys(all).length === Object.keys(lead).length
  const found: Delivery[] = []
  for (let before = start; found.length < limit;) {
    const bound = isWhole ? undefined : await table.idAt({ ...lead, id: range(before, from) }, stretch)
    const wanted = Math.max(limit - found.length, least)
    const rows = await table.find({ ...all, id: range(before, bound ?? from) }, wanted)
    for (const row of rows) if (found.length < limit && matches(row, filter)) found.push(row)
    const next = rows.length === wanted ? rows.at(-1)?.id : bound
    if (next === undefined) break
    before = next
    await yieldToOthers()
  }
  return found
}

/** The conditions as the database can check them; it may let more through. */
function conditionsOf({ states, targets, caller, door, text }: ListFilter): Omit<Part, 'id'> {
  return {
    ...states && { state: [...states] },
    ...targets && { target: targets.map(writeTarget) },
    ...caller !== undefined && { caller: writeCaller(caller) },
    // A slash comes right before the zero.
    ...door !== undefined && { door: { $gte: door, $lt: `${door}0` } },
    ...text !== undefined && { text },
  }
}

function range(before: string, from: string | undefined): Part['id'] {
  return { $lt: before, ...from !== undefined && { $gte: from } }
}

/**
 * What finds a text in JSON, whatever its case.
 *
 * @param depth how many times that was put into JSON
 */
export function textPattern(text: string, depth: 1 | 2): RegExp {
  const inJson = (value: string): string => JSON.stringify(value).slice(1, -1)
  return new RegExp((depth === 1 ? inJson(text) : inJson(inJson(text))).replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'), 'i')
}
