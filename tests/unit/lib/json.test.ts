import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { excessOfJson, excessOfValue } from '../../../src/lib/json'

function nested(levels: number): string {
  return `${'[{"a":'.repeat(levels / 2)}1${'}]'.repeat(levels / 2)}`
}

/** An object of so many values, itself included. */
function wide(values: number): string {
  const fields = ['"\\\\"', '{}', '[]', '-1.5e+3', 'true', 'null', '[2]', '"[,]:{}\\""']
  let left = values - 1
  const parts: string[] = []
  for (let index = 0; left > 0; index++) {
    const field = left === 1 ? '0' : fields[index % fields.length] ?? ''
    parts.push(`"\\":${index}" :\n${field}`)
    left -= field === '[2]' ? 2 : 1
  }
  return `{${parts.join(' ,\t')}}`
}

describe('the bounds of JSON', () => {
  const cases: [text: string, excess: string | undefined][] = [
    ['1', undefined],
    ['{}', undefined],
    [nested(64), undefined],
    [`[${nested(64)}]`, 'more than 64 levels'],
    [`{"messages":[${'['.repeat(5_000)}${']'.repeat(5_000)}]}`, 'more than 64 levels'],
    [wide(20_000), undefined],
    [wide(20_001), 'more than 20000 values'],
    [JSON.stringify(Array<number>(19_999).fill(0)), undefined],
    [JSON.stringify(Array<number>(20_000).fill(0)), 'more than 20000 values'],
    [JSON.stringify({ msg: '[{'.repeat(100_000), more: '\\"'.repeat(50_000) }), undefined],
  ]
  for (const [text, excess] of cases) {
    test(`${text.slice(0, 30)}… of ${text.length} characters: ${excess ?? 'within'}`, () => {
      assert.equal(excessOfJson(Buffer.from(text)), excess)
      assert.equal(excessOfValue(JSON.parse(text)), excess)
    })
  }

  test('count what is no JSON as far as a parser would read it', () => {
    for (const text of ['', '"', '"\\', '{"a', ']]]]', ':::', '[1 2', 'NaN', '\ufeff{}']) assert.equal(excessOfJson(Buffer.from(text)), undefined)
    assert.equal(excessOfJson(Buffer.from('['.repeat(65))), 'more than 64 levels')
    assert.equal(excessOfJson(Buffer.from(`[${'0,'.repeat(20_000)}:::::`)), 'more than 20000 values')
  })

  test('count alike in the text and in what was parsed from it', () => {
    // Of equal names the text has all, an object only one.
    assert.equal(excessOfJson(Buffer.from(`{${'"a":0,'.repeat(20_000)}"a":0}`)), 'more than 20000 values')
    for (let values = 19_990; values < 20_010; values++) {
      assert.equal(excessOfJson(Buffer.from(wide(values))), excessOfValue(JSON.parse(wide(values))))
    }
  })
})
