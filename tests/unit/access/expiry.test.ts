import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { announceExpiry, describeExpiry, parseExpiry } from '../../../src/access/expiry'

const day = 24 * 60 * 60 * 1000

describe('the end of a key', () => {
  test('is that of the day in the time zone of the process, or the moment', () => {
    const zone = process.env.TZ
    try {
      for (const [name, midnight] of [['UTC', '2026-11-21T00:00:00Z'], ['Asia/Shanghai', '2026-11-20T16:00:00Z'], ['America/New_York', '2026-11-21T05:00:00Z']] as const) {
        process.env.TZ = name
        assert.equal(parseExpiry('2026-11-20'), Date.parse(midnight), name)
        assert.equal(parseExpiry('2026-11-20T00:00'), Date.parse(midnight) - day, name)
        assert.equal(parseExpiry('2026-11-20T12:30:15+08:00'), Date.parse('2026-11-20T04:30:15Z'), name)
        assert.equal(parseExpiry('2026-11-20 12:30z'), Date.parse('2026-11-20T12:30:00Z'), name)
      }
      process.env.TZ = 'America/New_York'
      // The day on which the clocks are set back has 25 hours.
      assert.equal(parseExpiry('2026-11-01'), Date.parse('2026-11-02T05:00:00Z'))
    } finally {
      if (zone === undefined) delete process.env.TZ
      else process.env.TZ = zone
    }
  })

  for (const value of [
    '', 'soon', '2026', '2026-11', '2026-13-01', '2026-00-10', '2026-11-00', '2026-02-29', '2026-11-31', '20-11-2026', '2026-11-20T', '2026-11-20T25:00', '2026-11-20T12:60',
    '2026-11-20T12:00+99:00', '2026-11-20T12', '2026/11/20', 20261120, null, true, new Date(), {}, ['2026-11-20'],
  ]) {
    test(`is none in ${JSON.stringify(value)}`, () => {
      assert.equal(parseExpiry(value), undefined)
    })
  }

  test('is spoken of from a week before', () => {
    const now = Date.parse('2026-11-20T00:00:00Z')
    const keys = [-day, day, 6.9 * day, 7.1 * day, Infinity].map((time, index) => ({ expires: now + time, caller: { name: `key ${index}` } }))
    const lines = describeExpiry(keys, now)
    assert.equal(lines.length, 3)
    assert.match(lines[0] ?? '', /^the key "key 0" expired at 2026-11-19T00:00:00\.000Z: /)
    assert.match(lines[1] ?? '', /^the key "key 1" expires at 2026-11-21T00:00:00\.000Z: /)
  })

  test('is spoken of at the start and once a day', () => {
    const lines: string[] = []
    const timers: [callback: () => void, interval: number][] = []
    announceExpiry({
      setInterval: (callback: () => void, interval: number) => {
        timers.push([callback, interval])
        return () => undefined
      },
    }, [{ expires: Date.now() + day, caller: { name: 'ci' } }], { warn: (_: string, line: string) => lines.push(line) })
    assert.equal(lines.length, 1)
    assert.deepEqual(timers.map(([, interval]) => interval), [day])
    timers[0]?.[0]()
    assert.equal(lines.length, 2)
  })
})
