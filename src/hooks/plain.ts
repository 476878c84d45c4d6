import type { JsonObject } from '../lib/shape'
import { cut, textOf } from './fields'

/** The most lines of the plain rendering. */
const maxLines = 20
/** The longest value in it, in characters. */
const maxValue = 500

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

/** The fallback for a failed template: each text, number and boolean of the view on a line. */
export function renderPlainly(view: JsonObject): string {
  return Object.entries(view)
    .flatMap(([name, value]) => {
      const text = typeof value === 'boolean' ? String(value) : textOf(value)
      return text === '' ? [] : [`${cut(name, maxValue)}: ${cut(text, maxValue)}`]
    })
    .slice(0, maxLines).join('\n')
}
