/** A field of external data, such as an answer of another process. */
export function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}

/** @throws Error when the field is not a number */
export function numberOf(value: unknown, name: string): number {
  const found = field(value, name)
  if (typeof found !== 'number') throw new Error(`${name} is not a number`)
  return found
}

/** @throws Error when the field is not a string */
export function textOf(value: unknown, name: string): string {
  const found = field(value, name)
  if (typeof found !== 'string') throw new Error(`${name} is not a text`)
  return found
}

/** The strings of a list; empty if there is no list. */
export function textsOf(value: unknown, name: string): string[] {
  const found = field(value, name)
  return Array.isArray(found) ? found.map(String) : []
}

/** An object whose values are strings, such as headers; empty if there is none. */
export function recordOf(value: unknown, name: string): Record<string, string> {
  const found = field(value, name)
  if (typeof found !== 'object' || found === null) return {}
  return Object.fromEntries(Object.entries(found).map(([key, each]) => [key, String(each)]))
}
