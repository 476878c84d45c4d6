import { parseJson } from '../lib/json'
import { isString, objectOf } from '../lib/shape'
import type { Reader, Value, Writer } from '../relay/store/store'
import { dueAt, isBeat, type Beat } from './beat'
import type { BeatRule } from './rule'

/** The row of a beat. Anybody who knows its secret may report. */
export interface Row {
  name: string
  secret: string
  beat: Beat
}

const isStored = objectOf({ name: isString, secret: isString, entry: isString })

/** Reads the rows with a condition on `name`, `secret` or `due_at`. */
export function readRows(reader: Reader, condition: string, ...values: readonly Value[]): Row[] {
  return reader.all(isStored, `SELECT name, secret, entry FROM signs WHERE ${condition}`, ...values).flatMap(({ name, secret, entry }) => {
    const beat = parseJson(entry)
    return isBeat(beat) ? [{ name, secret, beat }] : []
  })
}

/** Writes a row. @param rule absent for a beat that is not watched any more */
export function saveRow(writer: Writer, { name, secret, beat }: Row, rule: BeatRule | undefined): void {
  writer.run(
    `INSERT INTO signs (name, secret, due_at, entry) VALUES (?, ?, ?, ?)
      ON CONFLICT (name) DO UPDATE SET secret = excluded.secret, due_at = excluded.due_at, entry = excluded.entry`,
    name, secret, rule ? dueAt(beat, rule) : null, JSON.stringify(beat),
  )
}
