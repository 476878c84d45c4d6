import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { quietUntil, timeOfDay } from '../../../src/message/quiet'

const night = { from: 22 * 60, to: 8 * 60 }

function until(quiet: Parameters<typeof quietUntil>[0], at: string): string | undefined {
  const end = quietUntil(quiet, Date.parse(at))
  return end === undefined ? undefined : new Date(end).toISOString()
}

describe('quiet hours', () => {
  const shanghai = { ...night, zone: 'Asia/Shanghai' }

  it('go over midnight', () => {
    assert.equal(until(shanghai, '2026-11-24T21:59:59+08:00'), undefined)
    assert.equal(until(shanghai, '2026-11-24T22:00:00+08:00'), '2026-11-25T00:00:00.000Z')
    assert.equal(until(shanghai, '2026-11-25T07:59:59.999+08:00'), '2026-11-25T00:00:00.000Z')
    assert.equal(until(shanghai, '2026-11-25T08:00:00+08:00'), undefined)
  })

  it('lie within a day', () => {
    const noon = { from: 12 * 60, to: 13 * 60 + 30, zone: 'Asia/Shanghai' }
    assert.equal(until(noon, '2026-11-24T12:30:00+08:00'), '2026-11-24T05:30:00.000Z')
    assert.equal(until(noon, '2026-11-24T13:30:00+08:00'), undefined)
  })

  it('end by the clocks of the zone, where these change in the night', () => {
    const berlin = { ...night, zone: 'Europe/Berlin' }
    // To summer time on March 29, and back on October 25.
    assert.equal(until(berlin, '2026-03-28T23:00:00+01:00'), '2026-03-29T06:00:00.000Z')
    assert.equal(until(berlin, '2026-10-24T23:00:00+02:00'), '2026-10-25T07:00:00.000Z')
  })

  it('end after the gap, where their end is a time that does not exist', () => {
    const berlin = { from: 22 * 60, to: 2 * 60 + 30, zone: 'Europe/Berlin' }
    assert.equal(until(berlin, '2026-03-28T23:00:00+01:00'), '2026-03-29T01:30:00.000Z')
    assert.equal(until(berlin, '2026-03-29T01:30:00.000Z'), undefined)
  })

  it('are told in the time of the zone', () => {
    assert.equal(timeOfDay(Date.parse('2026-11-25T00:00:00Z'), 'Asia/Shanghai'), '08:00')
  })
})
