import { toText } from '../src/lib/shape'

export { fieldsOf, isObject as isFields, objectsIn as listOf, toText as textOf, type JsonObject as Fields } from '../src/lib/shape'

export function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0
}

/** Splits a comma-separated text, such as targets. Chinese commas count too; empty words are dropped. */
export function wordsOf(text: string): string[] {
  return text.split(/[,，]/).map(word => word.trim()).filter(Boolean)
}

/** The texts of a list; empty if there is no list. */
export function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(toText) : []
}
