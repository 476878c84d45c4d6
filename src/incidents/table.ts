import { parseJson } from '../lib/json'
import { isString, isWhole, objectOf } from '../lib/shape'
import { threadName } from '../relay/delivery/delivery'
import type { Reader, Value, Writer } from '../relay/store/store'
import type { Ack } from '../message/model'
import { dueAt, isIncident, type Incident } from './incident'

const isRow = objectOf({ entry: isString })
const isId = objectOf({ id: isString })
const isTotal = objectOf({ count: isWhole })
const isCount = objectOf({ state: isString, count: isWhole })

/** What is asked of a list of incidents. */
export interface IncidentFilter {
  states?: readonly Incident['state'][]
  names?: readonly string[]
  /** In milliseconds since the epoch. */
  since?: number
}

/** The most incidents of a list. */
const most = 1_000

/** Finds an incident. */
export function findIncident(reader: Reader, id: string): Incident | undefined {
  return read(reader, 'id = ?', id)[0]
}

/** The newest incident of a thread. @param thread its hash, as `threadName` */
export function findByThread(reader: Reader, name: string, thread: string): Incident | undefined {
  return read(reader, 'name = ? AND thread = ? ORDER BY since DESC LIMIT 1', name, thread)[0]
}

/** The incidents of a platform message. @param chat its bot and target, as `placeOf` */
export function findByMessage(reader: Reader, chat: string, message: string): Incident[] {
  return read(reader, 'id IN (SELECT incident FROM incident_messages WHERE chat = ? AND message = ?) ORDER BY since', chat, message)
}

/** Up to two unresolved incidents of a chat: enough to know the only one. @param chat as for `findByMessage` */
export function findByChat(reader: Reader, chat: string): Incident[] {
  return read(reader, 'state != \'resolved\' AND id IN (SELECT incident FROM incident_messages WHERE chat = ?) ORDER BY since LIMIT 2', chat)
}

/** The incidents with something to do, the longest due first. @param without the IDs of those to leave out */
export function findDue(reader: Reader, now: number, without: readonly string[], limit: number): Incident[] {
  const condition = 'due_at <= ? AND id NOT IN (SELECT value FROM json_each(?)) ORDER BY due_at LIMIT ?'
  return read(reader, condition, now, JSON.stringify(without), limit)
}

/** The incidents of a filter, the newest first. */
export function listIncidents(reader: Reader, { states = [], names = [], since = 0 }: IncidentFilter): Incident[] {
  const within = (column: string, values: readonly string[]): string => values.length > 0 ? ` AND ${column} IN (${values.map(() => '?').join()})` : ''
  return read(reader, `since >= ?${within('state', states)}${within('name', names)} ORDER BY since DESC LIMIT ${most}`, since, ...states, ...names)
}

/** The incidents of which the operator's callback and the plugins of the bot have not heard everything. */
export function findUntold(reader: Reader, after: string, limit: number): Incident[] {
  return read(reader, 'untold > 0 AND id > ? ORDER BY id LIMIT ?', after, limit)
}

/** How many incidents there are in each state. */
export function countIncidents(reader: Reader): ReadonlyMap<string, number> {
  return new Map(reader.all(isCount, 'SELECT state, count(*) AS count FROM incidents GROUP BY state').map(({ state, count }) => [state, count]))
}

export function countUnresolved(reader: Reader): number {
  const sql = 'SELECT count(*) AS count FROM incidents WHERE state IN (\'open\', \'taken\', \'silenced\')'
  return reader.first(isTotal, sql)?.count ?? 0
}

/** Writes an incident. @param ack the present rules of its name */
export function saveIncident(writer: Writer, incident: Incident, ack: Ack | undefined): void {
  const { id, name, thread, caller, state, since, untold } = incident
  writer.run(
    `INSERT INTO incidents (id, name, thread, state, since, due_at, untold, entry) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET state = excluded.state, due_at = excluded.due_at, untold = excluded.untold, entry = excluded.entry`,
    id, name, threadName(caller, thread), state, since, dueAt(incident, ack), untold, JSON.stringify(incident),
  )
}

/** Notes that a platform message belongs to an incident. */
export function saveMessage(writer: Writer, chat: string, message: string, incident: string): void {
  writer.run('INSERT OR IGNORE INTO incident_messages (chat, message, incident) VALUES (?, ?, ?)', chat, message, incident)
}

/** The IDs of resolved incidents that began before a time. */
export function oldIncidents(reader: Reader, before: number, limit: number): string[] {
  return reader.all(isId, 'SELECT id FROM incidents WHERE state = \'resolved\' AND since < ? LIMIT ?', before, limit).map(({ id }) => id)
}

export function removeIncident(writer: Writer, id: string): void {
  writer.run('DELETE FROM incident_messages WHERE incident = ?', id)
  writer.run('DELETE FROM incidents WHERE id = ?', id)
}

function read(reader: Reader, condition: string, ...values: readonly Value[]): Incident[] {
  return reader.all(isRow, `SELECT entry FROM incidents WHERE ${condition}`, ...values).flatMap(({ entry }) => {
    const incident = parseJson(entry)
    return isIncident(incident) ? [incident] : []
  })
}
