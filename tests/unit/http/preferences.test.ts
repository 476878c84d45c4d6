import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseHandling, type Handling } from '../../../src/http/preferences'

/** What a header says, beside an empty query. */
function parse(prefer: string): Partial<Handling> {
  const { isStrict, deferred } = parseHandling({ prefer }, new URLSearchParams())
  return { isStrict, ...deferred && { deferred } }
}

const now = { isStrict: false, deferred: { wait: 0 } }
const strict = { isStrict: true }
const neither = { isStrict: false }

describe('the header Prefer', () => {
  const cases: [header: string, handling: object][] = [
    ['respond-async', now], ['Respond-Async', now], [' respond-async ; x=1', now], ['respond-async=', now], ['respond-async = ""', now],
    ['respond-async, wait=2', { isStrict: false, deferred: { wait: 2000 } }],
    ['respond-async,wait = "2" ;x', { isStrict: false, deferred: { wait: 2000 } }],
    ['respond-async, wait= 2 ;x', { isStrict: false, deferred: { wait: 2000 } }],
    ['respond-async, wait= , wait=2', now], ['respond-async, wait=2 3', now],
    ['handling=strict', strict], ['handling = "Strict"', strict], ['x="a, b", handling=strict', strict], ['handling=strict" ', neither],
    ['handling=lenient, handling=strict', neither], ['x="handling=strict', neither], ['', neither], [',;=', neither],
  ]
  for (const [header, handling] of cases) {
    test(`is read: ${header}`, () => {
      assert.deepEqual(parse(header), handling)
    })
  }

  test('is read in one go, whatever stands there', () => {
    const blanks = ' '.repeat(60_000)
    const start = performance.now()
    for (const header of [`a=${blanks}"`, `a${blanks}"`, `${blanks}"`, `a="${blanks}`, `a=""${blanks}"`, `a=b${blanks}"`]) {
      assert.deepEqual(parse(header), neither)
    }
    assert(performance.now() - start < 1_000)
  })
})
