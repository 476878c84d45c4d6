/** An object of JSON, of which nothing is known yet. */
export type Fields = Readonly<Record<string, unknown>>

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What is no object counts as an empty one. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {}
}

/** The objects of a list; none where there is no list. */
export function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : []
}

/** A text or a number as text; anything else as an empty one. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : ''
}

export function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0
}

/** The words of a text with commas between them, Chinese ones as well, such as targets; blank ones do not count. */
export function wordsOf(text: string): string[] {
  return text.split(/[,，]/).map(word => word.trim()).filter(Boolean)
}

/** The texts of a list; none where there is no list. */
export function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(textOf) : []
}
