import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseWishes } from '../../../src/message/parse'

describe('when and how a message leaves', () => {
  it('is read from JSON', () => {
    assert.deepEqual(parseWishes({ urgent: true, thread: 'run 7', thread_mode: 'update' }), { urgent: true, thread: 'run 7', threadMode: 'update' })
    assert.deepEqual(parseWishes({ severity: 'ok', mention: { critical: 'oncall', warning: ['li-lei', 'all'], info: 'none' } }), {
      severity: 'ok', mention: { critical: ['oncall'], warning: ['li-lei', 'all'] },
    })
    assert.deepEqual(parseWishes({ mention: 'none', severity: null }), { mention: {} })
    assert.deepEqual(parseWishes({ urgent: null, send_at: null, thread: '', msg: 'x' }), {})
  })

  it('is read from a form or a query, where everything is text', () => {
    assert.deepEqual(['1', 'true', '0', 'false'].map(urgent => parseWishes({ urgent }, true).urgent), [true, true, false, false])
    const both = ['oncall', 'li-lei']
    assert.deepEqual(parseWishes({ severity: '', mention: 'oncall, li-lei' }, true), { mention: { critical: both, warning: both, info: both } })
  })

  it('has a time as a date with an offset, or as seconds from now', () => {
    const at = (value: unknown): number => (parseWishes({ send_at: value }).sendAt?.at ?? NaN)
    assert.equal(at('2020-02-01T08:00:00+08:00'), Date.UTC(2020, 1, 1))
    // A plus sign in a query stands for a blank.
    assert.equal(at('2020-02-01T08:00:00 08:00'), Date.UTC(2020, 1, 1))
    assert.equal(at('2020-02-01 00:00Z'), Date.UTC(2020, 1, 1))
    const before = Date.now()
    assert.ok([90, '90'].every(value => at(value) >= before + 90_000 && at(value) <= Date.now() + 90_000))
  })

  for (const [fields, rule] of [
    [{ urgent: 'yes' }, /urgent must be true or false/], [{ urgent: 1 }, /urgent/], [{ send_at: '2026-11-24T10:00:00' }, /send_at must be a date-time with an offset/],
    [{ send_at: '2026-02-30T10:00:00Z' }, /send_at must be a date-time/],
    [{ send_at: 'soon' }, /send_at/], [{ send_at: -1 }, /send_at/], [{ send_at: 31 * 86_400 }, /send_at must be at most 30 days/],
    [{ thread: 'x'.repeat(201) }, /thread must be text/], [{ thread: 7 }, /thread/], [{ thread: ' ' }, /thread/], [{ thread: 'a', thread_mode: 'edit' }, /thread_mode/],
    [{ severity: 'bad' }, /severity must be critical, warning, info or ok/], [{ mention: [] }, /mention must be/], [{ mention: { ok: 'a' } }, /mention goes by/],
    [{ mention: 'a,none' }, /mention: none goes alone/], [{ mention: 'a b' }, /mention must be/],
  ] as const) {
    it(`is refused where it is ${JSON.stringify(fields).slice(0, 50)}`, () => {
      assert.throws(() => parseWishes(fields), rule)
    })
  }
})
