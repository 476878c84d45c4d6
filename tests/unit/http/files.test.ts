import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { MediaLinks } from '../../../src/http/files'

const id = '0b1f7d6e-1d3c-4b52-8f3c-0a2b4c6d8e0f/a b.png'
const hour = 60 * 60 * 1000
const links = new MediaLinks(() => 'http://host/relay', 'secret')
const queryOf = (link: string) => new URL(link).searchParams
/** The query of a link to that file that was made at the beginning of time, and expires after an hour. */
const query = queryOf(links.to({ id }, 0))

function changed(name: string, value: string): URLSearchParams {
  const other = new URLSearchParams(query)
  other.set(name, value)
  return other
}

describe('signed links', () => {
  test('lead to the file below the address of the plugin', () => {
    const { origin, pathname } = new URL(links.to({ id }))
    assert.equal(origin + pathname, `http://host/relay/media/${id.replace(' ', '%20')}`)
  })

  test('are valid for an hour', () => {
    assert.match(query.get('signature') ?? '', /^[\w-]{43}$/)
    assert.equal(query.get('expires'), String(hour))
    assert.ok(links.isValid(id, query, hour - 1))
    assert.ok(!links.isValid(id, query, hour))
  })

  test('hold for one file, one end and one secret', () => {
    assert.ok(!links.isValid(`${id}x`, query, 0))
    assert.ok(!links.isValid(id, changed('expires', String(hour + 1)), 0))
    assert.ok(!new MediaLinks(() => '', 'another').isValid(id, query, 0))
    // The digit is at the end of the time in the one, and at the beginning of the name in the other.
    const signature = queryOf(links.to({ id: 'b' }, 1)).get('signature') ?? ''
    assert.ok(!links.isValid('1b', new URLSearchParams({ expires: String(hour / 10), signature }), 0))
  })

  test('are not valid with any other text as signature or time', () => {
    const signature = query.get('signature') ?? ''
    const other = (signature.startsWith('A') ? 'B' : 'A') + signature.slice(1)
    for (const text of ['', 'é', other, `${signature}=`, ` ${signature}`, signature.slice(1), signature.repeat(100)]) {
      assert.ok(!links.isValid(id, changed('signature', text), 0), text)
    }
    for (const end of ['', 'NaN', 'Infinity', '-1', 'x']) assert.ok(!links.isValid(id, changed('expires', end), 0), end)
    assert.ok(!links.isValid(id, queryOf(links.to({ id }, NaN)), 0))
    assert.ok(!links.isValid(id, new URLSearchParams(), 0))
  })
})
