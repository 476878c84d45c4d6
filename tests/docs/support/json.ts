import assert from 'node:assert/strict'

/** A value as an object, its fields not looked at yet. */
export function record(value: unknown): Record<string, unknown> {
  assert(isRecord(value), `not an object: ${JSON.stringify(value)}`)
  return value
}

/** A value as a list of objects. */
export function records(value: unknown): Record<string, unknown>[] {
  assert(Array.isArray(value), `not a list: ${JSON.stringify(value)}`)
  return value.map(record)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** A value with its IDs, times and durations made equal, so that an example can be compared with an answer. */
export function shape(value: unknown): unknown {
  return JSON.parse(bare(JSON.stringify(value)).replace(/"-?\d{4,}"/g, '"ID"').replace(/("\w+_ms":)\d+/g, '$1 0'))
}

/** A text with its UUIDs and times made equal. */
export function bare(text: string): string {
  return text.replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UUID').replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
}
