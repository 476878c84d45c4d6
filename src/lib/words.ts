import { demand, RelayError } from '../errors'
import { say, words, type Text } from '../texts/text'
import { quoted } from './log'

/**
 * Reads a list of words, or a text of words with commas between them, also Chinese ones; `undefined` for anything else. Blank words are
 * left out. Numbers are accepted, because YAML reads a word of digits as one.
 */
export function readList(value: unknown): string[] | undefined {
  const elements: unknown[] = typeof value === 'string' ? value.split(/[,，]/) : [value].flat()
  if (!elements.every(element => typeof element === 'string' || typeof element === 'number')) return
  return elements.map(element => String(element).trim()).filter(Boolean)
}

/** Whether a text matches a pattern in which `*` stands for any number of characters. Case counts. */
export function matchesGlob(pattern: string, text: string): boolean {
  const [start = '', ...parts] = pattern.split('*')
  const end = parts.pop()
  if (end === undefined) return text === pattern
  if (!text.startsWith(start)) return false
  let at = start.length
  // The first match leaves the most text for the other parts.
  for (const part of parts) {
    const place = text.indexOf(part, at)
    if (place < 0) return false
    at = place + part.length
  }
  return text.length - end.length >= at && text.endsWith(end)
}

/** A size for people, rounded down: `20 MB`, `19.5 KB`, `100 bytes`. As in the settings, MB means 1024 × 1024 bytes. */
export function writeSize(bytes: number): string {
  const power = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), 3)
  return `${Math.floor(bytes / 1024 ** power * 10) / 10} ${['bytes', 'KB', 'MB', 'GB'][power] ?? ''}`
}

/** Whether a setting holds a value: null and blank text count as absent. */
export function isSet<T>(value: T): value is NonNullable<T> {
  return value !== undefined && value !== null && !(typeof value === 'string' && value.trim() === '')
}

/**
 * Reads a setting, or a parameter of a query; `undefined` if it has no value.
 *
 * @param parse returns `undefined` for an invalid value
 * @param rule the expected value
 * @throws RelayError `bad-request` for any other value
 */
export function readValue<V, T>(
  name: string, value: V, parse: (value: NonNullable<V>) => T | undefined, rule: Text,
): T | undefined {
  if (!isSet(value)) return
  const parsed = parse(value)
  demand(parsed !== undefined, mustBe(name, rule))
  return parsed
}

/** Says what a field must be. */
export function mustBe(name: string, rule: Text): Text {
  return say('must-be', { name, rule })
}

/** Words with "or" before the last, such as the rule for a value that must be one of them. */
export function either(...choices: readonly string[]): Text {
  return joined('either', choices)
}

/** Words with "and" before the last. */
export function all(...choices: readonly string[]): Text {
  return joined('all', choices)
}

function joined(id: 'either' | 'all', choices: readonly string[]): Text {
  const last = choices.at(-1) ?? ''
  return choices.length > 1 ? say(id, { others: choices.slice(0, -1), last }) : words(last)
}

/** Whether so few letters that are inserted, removed or replaced make one word of another. For one or two letters only. */
export function isNear(one: string, other: string, letters: number): boolean {
  let at = 0
  while (at < one.length && one[at] === other[at]) at++
  if (at === one.length && at === other.length) return true
  return letters > 0 && [[1, 0], [0, 1], [1, 1]].some(([x = 0, y = 0]) => isNear(one.slice(at + x), other.slice(at + y), letters - 1))
}

/**
 * Refuses an entry of the settings with unknown fields.
 *
 * @param kind the name of such entries, in the plural
 * @throws RelayError `bad-request`, which names the first unknown field
 */
export function refuseFields(kind: string | Text, [unknownField]: readonly string[]): void {
  if (unknownField !== undefined) throw new RelayError('bad-request', say('no-field', { kind, field: quoted(unknownField) }))
}

/**
 * Divides a text that is too long for one message, preferably at the ends of lines or words.
 *
 * @param most the most characters of a part, in UTF-16 code units; a surrogate pair is never split
 * @returns at least one part
 */
export function divideText(text: string, most: number): string[] {
  const parts: string[] = []
  let rest = text
  while (rest.length > most) {
    const head = rest.slice(0, most)
    const ends = ['\n', ' '].map(mark => head.lastIndexOf(mark) + 1)
    const end = ends.find(place => place > most / 2) ?? (/[\uD800-\uDBFF]$/.test(head) ? most - 1 : most)
    parts.push(rest.slice(0, end))
    rest = rest.slice(end)
  }
  return [...parts, rest]
}

/** The ends of names of fields whose values are not shown. */
const secrets = 'token|secret|password|passwd|pwd|signature|authorization|credentials?|callback_?url'
const secretName = new RegExp(`(?:${secrets}|(?:api|app|access|device|private|push)[-_]?key)$`, 'i')

/** Whether the field of a foreign payload is named like a secret. */
export function namesSecret(field: string): boolean {
  return secretName.test(field.slice(-40))
}
