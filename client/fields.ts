import { toText } from '../src/lib/shape'

export { fieldsOf, isObject as isFields, objectsIn as listOf, toText as textOf, type JsonObject as Fields } from '../src/lib/shape'

export function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0
}

/** The words of a text with commas between them, Chinese ones as well, such as targets; blank ones do not count. */
export function wordsOf(text: string): string[] {
  return text.split(/[,，]/).map(word => word.trim()).filter(Boolean)
}

/** The texts of a list; none where there is no list. */
export function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(toText) : []
}
