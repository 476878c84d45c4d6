import { isObject, type JsonObject } from '../lib/shape'
import { namesSecret } from '../lib/words'
import { cut, line, textOf } from './fields'

/** The most lines of the plain rendering. */
const maxLines = 20
/** The longest value in it, in characters. */
const maxValue = 500
/** The longest name of a field in it, in characters. */
const maxName = 120
/** The most fields that are looked at, and the most levels of objects. */
const maxFields = 2000
const maxDepth = 5
/** The most elements of a list that are named. */
const maxElements = 10

/** The last words of names whose fields tell an event, in the order in which an element of a list is named after them. */
const telling = [
  'title', 'name', 'subject', 'summary', 'message', 'msg', 'text', 'description', 'reason', 'error', 'event', 'alert', 'type', 'kind',
  'action', 'status', 'state', 'result', 'severity', 'level', 'priority', 'host', 'hostname', 'service', 'url', 'link',
]
/** The last words of names whose fields tell little. */
const dull: ReadonlySet<string> = new Set(['id', 'ids', 'uuid', 'guid', 'hash', 'sha', 'digest', 'timestamp'])

/**
 * Cleans the output of a template for a chat: one kind of line break, no control characters, no marks of writing direction, no blanks at
 * the end of a line, and at most one empty line in a row.
 */
export function tidy(text: string): string {
  return text.toWellFormed()
    .replace(/\r\n?|[\u2028\u2029\v\f]/g, '\n')
    .replace(/\t/g, '  ')
    .replace(/[^\P{Cc}\n]|[\u202a-\u202e\u2066-\u2069\u200e\u200f\ufeff]/gu, '')
    // Not by a pattern: one anchored at the end takes quadratic time for a run of blanks.
    .split('\n').map(line => line.trimEnd()).join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

/**
 * The fields of a payload that nobody has described, one on a line: those of inner objects as `outer.inner`, lists by the name of each
 * element, and the telling ones first. Secrets are left out.
 *
 * @param most the most lines; a last line tells that there are more fields
 */
export function renderPlainly(view: JsonObject, most = maxLines): string {
  const fields: Field[] = []
  collect(view, '', 0, fields)
  const lines = fields.sort((a, b) => a.rank - b.rank).map(({ name, value }) => `${cut(name, maxName)}: ${cut(value, maxValue)}`)
  return [...lines.slice(0, most), ...lines.length > most ? ['…'] : []].join('\n')
}

interface Field {
  name: string
  value: string
  /** The place among the lines. */
  rank: number
}

function collect(object: JsonObject, path: string, depth: number, fields: Field[]): void {
  for (const [key, value] of Object.entries(object)) {
    if (fields.length >= maxFields) return
    if (namesSecret(key)) continue
    const name = path + key
    if (Array.isArray(value)) {
      const names = value.slice(0, maxElements).map(nameOf).filter(each => each !== '')
      const more = value.length > maxElements ? ', …' : ''
      if (names.length > 0) fields.push({ name, value: names.join(', ') + more, rank: value.some(isObject) ? depth + 1 : 50 })
    } else if (isObject(value)) {
      if (depth < maxDepth) collect(value, `${name}.`, depth + 1, fields)
    } else {
      const text = scalarOf(value)
      const word = lastWord(key)
      if (text !== '') fields.push({ name, value: text, rank: telling.includes(word) ? depth : dull.has(word) ? 99 : 50 })
    }
  }
}

/** An element of a list by its most telling field. */
function nameOf(element: unknown): string {
  if (!isObject(element)) return line(scalarOf(element))
  const texts = Object.entries(element).slice(0, 100).map(([key, value]) => ({ word: lastWord(key), text: line(scalarOf(value)) }))
  const told = telling.flatMap(word => texts.filter(each => each.word === word)).concat(texts)
  return told.find(({ text }) => text !== '')?.text ?? ''
}

function scalarOf(value: unknown): string {
  return typeof value === 'boolean' ? String(value) : textOf(value)
}

/** The last word of the name of a field in small letters: `eventType` and `event_type` end with `type`. */
function lastWord(name: string): string {
  return (/(?:[A-Z]?[a-z]+|[A-Z]+)$/.exec(name.slice(-40))?.[0] ?? '').toLowerCase()
}
