/** A JSON object whose fields have not been read yet. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Checks that a value from JSON has a type. For an interface, use `objectOf` with a table, which the compiler checks. */
export type Shape<T> = (value: unknown) => value is T

export const isString: Shape<string> = value => typeof value === 'string'
export const isNumber: Shape<number> = value => typeof value === 'number'
/** A number or a place: a whole number that is exact. */
export const isWhole: Shape<number> = (value): value is number => Number.isSafeInteger(value) && Number(value) >= 0
/** A time since the epoch that dates can have (ECMA-262, section 21.4.1.1), or a span, in milliseconds. */
export const isTime: Shape<number> = (value): value is number => isNumber(value) && value >= 0 && value <= 8.64e15
export const isBoolean: Shape<boolean> = value => typeof value === 'boolean'
export const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value)
/** The fields of a JSON object; empty for any other value. */
export const fieldsOf = (value: unknown): JsonObject => isObject(value) ? value : {}
/** The objects in a list; empty for any other value. */
export const objectsIn = (value: unknown): JsonObject[] => Array.isArray(value) ? value.filter(isObject) : []
/** Removes the fields that are null: in requests, null means absent. */
export const withoutNull = (fields: JsonObject): JsonObject => (
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
)
/** A text, or a number as text, because some platforms use numbers as IDs; empty for any other value. */
export const toText = (value: unknown): string => typeof value === 'string' || typeof value === 'number' ? String(value) : ''

export const oneOf = <const T>(values: readonly T[]): Shape<T> => (value): value is T => values.some(each => each === value)

/** A field that may be absent. */
export const optional = <T>(shape: Shape<T>): Shape<T | undefined> => value => value === undefined || shape(value)
export const nullable = <T>(shape: Shape<T>): Shape<T | null> => value => value === null || shape(value)
/** An object with any names, such as IDs, and values of one shape. */
export const mapOf = <T>(shape: Shape<T>): Shape<Record<string, T>> =>
  (value): value is Record<string, T> => isObject(value) && Object.values(value).every(shape)
export const listOf = <T>(shape: Shape<T>): Shape<T[]> => (value): value is T[] => Array.isArray(value) && value.every(shape)

/** An object with these fields. Further fields are allowed, because another release may have written them. */
export function objectOf<T extends object>(fields: { readonly [K in keyof T]-?: Shape<T[K]> }): Shape<T> {
  const shapes = Object.entries<Shape<unknown>>(fields)
  return (value): value is T => isObject(value) && shapes.every(([name, shape]) => shape(value[name]))
}
