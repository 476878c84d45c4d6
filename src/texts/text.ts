// What the relay says to callers and operators. A text is kept as its ID and its values until somebody reads it, and is written then in
// the language of the reader.
import { fill, listed } from './fill'
import type { Language } from './language'
import { table, type TextId } from './table'

/** A value in a text: data, such as a name or a number; another text; or a list of these, written with commas between them. */
export type Value = string | number | Text | readonly (string | Text)[]

/** The names of the places in a text, which are written as `{name}`. */
type Places<S extends string> = S extends `${string}{${infer Name}}${infer Rest}` ? Name | Places<Rest> : never

/** The values that a text needs; none if it has no places. */
export type ValuesOf<I extends TextId>
  = Places<typeof table[I][0]> extends never ? [] : [Readonly<Record<Places<typeof table[I][0]>, Value>>]

/** A text of the table with its values, foreign words, or clauses with colons between them. */
export class Text {
  /** @param id in the table; otherwise the values say what it is */
  constructor(private readonly id: string, private readonly values: Readonly<Record<string, Value>> = {}) {}

  /** Writes the text. Foreign words and data stay as they are. */
  in(language: Language): string {
    const write = (value: Value = ''): string => {
      if (value instanceof Text) return value.in(language)
      return typeof value === 'object' ? listed(value.map(write), language) : String(value)
    }
    if (isTextId(this.id)) return fill(table[this.id], language, name => write(this.values[name]))
    const { clauses, words } = this.values
    return Array.isArray(clauses) ? clauses.map(write).join(language === 'zh-CN' ? '：' : ': ') : write(words)
  }

  /** The text in English. */
  toString(): string {
    return this.in('en-US')
  }

  /** The text as it is kept in a file: `parseTexts` reads it. */
  toJSON(): object {
    return { $text: this.id, ...this.values }
  }
}

/** A text of the table. */
export function say<I extends TextId>(id: I, ...[values]: ValuesOf<I>): Text {
  return new Text(id, values)
}

/** Foreign words, such as those of a platform or a name: they are the same in each language. */
export function words(text: string): Text {
  return new Text('$words', { words: text })
}

/** Clauses of which each explains the one before, with colons between them: `the bot is muted: nothing was sent`. */
export function clauses(...parts: readonly (string | Text)[]): Text {
  return new Text('$clauses', { clauses: parts })
}

/** Checks that a value is a text, for shapes. */
export function isText(value: unknown): value is Text {
  return value instanceof Text
}

/** Parses JSON that was written with texts. @throws SyntaxError */
export function parseTexts(json: string): unknown {
  // Reviving takes twice the time of parsing, and most records have no texts.
  return json.includes('"$text"') ? JSON.parse(json, revive) : JSON.parse(json)
}

function revive(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('$text' in value)) return value
  const { $text: id, ...values } = value
  return typeof id === 'string' && isValues(values) ? new Text(id, values) : value
}

/** Writes the texts within a value in a language; for `JSON.stringify`. */
export function writer(language: Language): (this: unknown, key: string, value: unknown) => unknown {
  return function (key, value) {
    // `value` is what `toJSON` has made of the text.
    const original: unknown = typeof value === 'object' && value !== null && '$text' in value ? Reflect.get(Object(this), key) : undefined
    return original instanceof Text ? original.in(language) : value
  }
}

function isTextId(id: string): id is TextId {
  return Object.hasOwn(table, id)
}

function isValues(values: object): values is Record<string, Value> {
  const isPlain = (value: unknown): boolean => typeof value === 'string' || typeof value === 'number' || value instanceof Text
  return Object.values(values).every(value => Array.isArray(value) ? value.every(isPlain) : isPlain(value))
}
