import assert from 'node:assert/strict'
import fc, { type Arbitrary } from 'fast-check'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { RelayError } from '../../../src/errors'

/** How often each property is tried. */
const numRuns = Number(process.env.FUZZ_RUNS ?? 200)
/** The same inputs in each run, unless another seed is asked for. */
const seed = Number(process.env.FUZZ_SEED ?? 2026)
/** How long an input may take, in milliseconds of the processor. */
const longest = 100

/** A property of all inputs: it holds if `check` throws nothing, and takes no longer than `longest`. */
export function holds<T>(name: string, inputs: Arbitrary<T>, check: (input: T) => unknown): void {
  test(name, { timeout: numRuns > 10_000 ? 3_600_000 : 60_000 }, async t => {
    t.diagnostic(`seed ${seed}, ${numRuns} runs`)
    await fc.assert(fc.asyncProperty(inputs, async input => {
      // A busy machine disturbs a measurement now and then, also that of LiquidJS.
      for (let attempt = 1; ; attempt++) {
        const start = process.cpuUsage()
        const late = await measured(check, input)
        const { user, system } = process.cpuUsage(start)
        if (late === undefined && user + system < longest * 1000) return
        assert(attempt < 5, late ?? `takes ${(user + system) / 1000} ms`)
      }
    }), { seed, numRuns })
  })
}

/** Checks an input. @returns the error of a template that took too long */
async function measured<T>(check: (input: T) => unknown, input: T): Promise<Error | undefined> {
  try {
    await check(input)
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('template render limit exceeded')) return error
    throw error
  }
}

/** The result of a parser; `undefined` if it refuses the input as a mistake of the caller. Any other error fails the test. */
export function accepted<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch (error) {
    if (error instanceof RelayError && error.status >= 400 && error.status < 500) return
    throw error
  }
}

/** Compares values in which there may be errors, of which only what callers see counts. */
export function assertSame(actual: unknown, expected: unknown): void {
  const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value, (_, each: unknown) => (
    each instanceof RelayError ? { error: each.code, said: each.said } : each
  )))
  // Their difference can be as long as an input.
  assert(isDeepStrictEqual(plain(actual), plain(expected)), `${JSON.stringify(plain(actual)).slice(0, 500)} is not ${JSON.stringify(plain(expected)).slice(0, 500)}`)
}

/** Any UTF-16, also lone surrogates. */
const units = fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 20 }).map(codes => String.fromCharCode(...codes))

/** Texts that consist of these pieces, of ordinary and of any characters: short ones, and long ones that repeat few pieces. */
export function textsOf(...pieces: readonly string[]): Arbitrary<string> {
  const piece = fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...pieces) }, fc.string({ maxLength: 8 }), fc.string({ unit: 'grapheme', maxLength: 4 }), units)
  const several = fc.array(piece, { maxLength: 12 }).map(all => all.join(''))
  const repeated = fc.tuple(several, several, fc.integer({ min: 1, max: 20_000 }), several)
    .map(([start, middle, length, end]) => start + middle.repeat(length / (middle.length || 1)) + end)
  return fc.oneof({ weight: 9, arbitrary: several }, repeated)
}

/** Objects with some of these fields. Each has one of its own values, or anything. */
export function objectsOf(fields: Readonly<Record<string, readonly unknown[]>>): Arbitrary<Record<string, unknown>> {
  const known = Object.entries(fields).map(([name, own]) => (
    [name, fc.oneof({ weight: own.length > 0 ? 3 : 0, arbitrary: fc.constantFrom(...own, null) }, anything)] as const
  ))
  return fc.record<Record<string, unknown>>(Object.fromEntries(known), { requiredKeys: [] })
}

/** What JSON can hold. */
export const anything: Arbitrary<unknown> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom<unknown>(null, true, 0, -0.5, 1e308, '', ' ', '0', 'all', '__proto__', 'constructor', [], {}, [[]], [null]) },
  { weight: 2, arbitrary: textsOf('group:1', 'http://a', '\0', '\u202e') },
  fc.jsonValue({ maxDepth: 3, stringUnit: 'binary' }),
)
