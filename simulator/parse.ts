/** Whether a parsed JSON value is an object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A group or user ID as implementations accept it, number or digits; null if it is neither or not positive. */
export function parseId(value: unknown): string | null {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value > 0 ? String(value) : null
  return typeof value === 'string' && /^[1-9]\d{0,18}$/.test(value) ? value : null
}

/** An integer given as number or as digits, possibly negative; null otherwise. */
export function parseInteger(value: unknown): number | null {
  if (typeof value === 'string' && /^-?\d{1,15}$/.test(value)) return Number(value)
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : null
}

/** A string that is not empty; null otherwise. */
export function parseText(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

/** OneBot flags are booleans, or text if they come from CQ strings and queries. */
export function parseFlag(value: unknown): boolean {
  return value === true || value === 'true' || value === 1 || value === '1'
}

/** Deeper than any call, but far below the depth at which `JSON.stringify`, unlike `JSON.parse`, exhausts the stack. */
const deepest = 100

/** The JSON value of a text, or null if it is not JSON or nested too deep to be serialized again. */
export function parseJson(text: string): { value: unknown } | null {
  try {
    const value: unknown = JSON.parse(text)
    return isDeeper(value, deepest) ? null : { value }
  } catch {
    return null
  }
}

function isDeeper(value: unknown, levels: number): boolean {
  return typeof value === 'object' && value !== null && (levels === 0 || Object.values(value).some(part => isDeeper(part, levels - 1)))
}
