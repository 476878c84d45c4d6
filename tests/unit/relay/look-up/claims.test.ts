import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { RelayError } from '../../../../src/errors'
import type { HistoryEntry, HistoryPage, Report } from '../../../../src/platform/port'
import { Claims, type OpenCall } from '../../../../src/relay/look-up/claims'
import { createDelivery, type Delivery } from '../../../../src/relay/delivery/delivery'
import { SimulatedClock } from '../../../support/simulated-clock'

const settle = 30_000

/** A chat in which a message was called a minute after the start, and is looked for ten seconds later. */
async function setUp(before: (claims: Claims, clock: SimulatedClock) => void = () => undefined) {
  const clock = new SimulatedClock(0)
  const claims = new Claims(clock)
  before(claims, clock)
  await clock.run(60_000)
  const call = claims.begin('c', 'call', 'x', settle)
  await clock.run(10_000)
  const judge = (page: HistoryPage | undefined, of: OpenCall = call): string => told(claims, of, [], page)
  return { clock, claims, call, judge }
}

const entry = (id: string, time: number, isEqual = true, isSeen = true): HistoryEntry => ({ id, time, isEqual, isSeen })
const pageOf = (own: HistoryEntry[], oldest = -Infinity, isReadable = true): HistoryPage => ({ own, oldest, isReadable })
/** What is found of a call, with the ID. */
function told(claims: Claims, call: OpenCall, ...shown: [readonly Report[], HistoryPage?]): string {
  const kind = claims.find(call, ...shown)
  const { foundAs } = call
  return kind === 'found' && foundAs !== undefined ? `found ${foundAs}` : kind
}

/** Claims an ID: an earlier delivery is known to have become that message. */
function claim(claims: Claims, id: string): void {
  claims.begin('c', id, 'other', settle)
  claims.answered('c', id, { messageIds: [id] })
}

describe('a look-up', () => {
  // The call was made at 60 s; without a message that is known on both sides, the window begins 10 s earlier.
  const cases: [what: string, page: HistoryPage | undefined, claimed: string[], verdict: string][] = [
    ['finds an equal message', pageOf([entry('a', 61_000)]), [], 'found a'],
    ['finds the oldest of several', pageOf([entry('b', 62_000), entry('a', 61_000)]), [], 'found a'],
    ['does not find one that is another delivery', pageOf([entry('a', 61_000)]), ['a'], 'absent'],
    ['does not find another text', pageOf([entry('a', 61_000, false)]), [], 'absent'],
    ['finds nothing in a history that reaches back far enough', pageOf([], 49_000), [], 'absent'],
    ['cannot tell from one that does not', pageOf([], 55_000), [], 'inconclusive'],
    ['cannot tell from one that is unreadable', pageOf([], -Infinity, false), [], 'inconclusive'],
    ['cannot tell without a page', undefined, [], 'no-history'],
    ['takes a clock that is a little behind for right', pageOf([entry('a', 51_000)]), [], 'found a'],
    ['cannot tell where an equal message is older than the window', pageOf([entry('a', 49_000)]), [], 'inconclusive'],
    ['needs no clock beside a message that was there before', pageOf([entry('before', -9e9, false), entry('a', -8e9)]), ['before'], 'found a'],
    ['tells one that the server has not seen', pageOf([entry('before', 0, false), entry('a', 61_000, true, false)]), ['before'], 'local'],
    ['finds the one of two that it has seen', pageOf([entry('a', 61_000, true, false), entry('b', 62_000)]), [], 'found b'],
    ['knows that what came before that is older', pageOf([entry('a', 1), entry('before', 2, false)]), ['before'], 'absent'],
  ]
  for (const [what, page, claimed, verdict] of cases) {
    test(what, async () => {
      const { judge } = await setUp(claims => claimed.forEach(id => claim(claims, id)))
      assert.equal(judge(page), verdict)
    })
  }

  test('finds one of two open equal messages only where both are there, and takes neither for absent between', async () => {
    const { claims, judge } = await setUp()
    const other = claims.begin('c', 'other', 'x', settle)
    const [none, one, two] = [[], [entry('a', 61_000)], [entry('a', 61_000), entry('b', 62_000)]].map(own => pageOf(own))
    assert.deepEqual([none, one, two].map(page => judge(page)), ['absent', 'inconclusive', 'found a'])
    assert.equal(judge(two, other), 'found b')
  })

  test('knows a call that was answered until the end of its delivery is written, and one without an answer after that', async () => {
    const { claims } = await setUp()
    const begin = (): OpenCall[] => ['d 0', 'd 1'].map(name => claims.begin('c', name, 'x', settle))
    const [answered, open] = begin()
    claims.answered('c', 'd 0', { messageIds: ['a'] }, true)
    assert.deepEqual(begin().map((call, index) => call === [answered, open][index]), [true, true])
    const late = { success: false, error: new RelayError('unanswered') } as const
    claims.written('c', 'd', [late, undefined])
    assert.equal(begin()[0], answered, 'its end does not tell of an answer that came while it was written')
    claims.written('c', 'd', [{ success: true, messageIds: ['a'] }, undefined])
    assert.deepEqual(begin().map((call, index) => call === [answered, open][index]), [false, true])
  })

  test('that was given up takes nothing that a later call of its delivery has brought', async () => {
    const { claims, call, judge } = await setUp()
    claims.drop('c', 'call')
    const next = claims.begin('c', 'call', 'x', settle)
    const page = pageOf([entry('a', 71_000)], 0)
    assert.deepEqual([call, next].map(of => judge(page, of)), ['inconclusive', 'found a'])
  })

  test('counts an equal message that the platform took without an ID', async () => {
    const { claims, judge } = await setUp()
    claims.begin('c', 'file', 'x', settle)
    claims.answered('c', 'file', { messageIds: [] })
    assert.equal(judge(pageOf([entry('a', 61_000)])), 'inconclusive')
    assert.equal(claims.settling('c', 'x'), 20_000)
  })

  test('takes a report for the message, unless it came before the call or belongs to another', async () => {
    const { claims, call } = await setUp(claims => claim(claims, 'claimed'))
    const reports = [{ id: 'early', heardAt: 59_999 }, { id: 'claimed', heardAt: 61_000 }]
    assert.equal(told(claims, call, reports), 'no-history')
    assert.equal(told(claims, call, [...reports, { id: 'a', heardAt: 61_000 }]), 'found a')
  })

  test('of two equal messages finds the one that came before a restart first, although only the other was reported since', async () => {
    const { claims, call } = await setUp()
    claims.begin('c', 'other', 'x', settle)
    const page = pageOf([entry('a', 61_000), entry('b', 65_000)])
    assert.equal(told(claims, call, [{ id: 'b', heardAt: 65_000 }], page), 'found a')
  })

  test('remembers the newest of more messages than it can remember, those of this process last', async () => {
    const { claims, judge } = await setUp(claims => claim(claims, 'own'))
    const past = Array.from({ length: 1_000 }, (_, seq): Delivery => {
      const request = { mode: 'single' as const, target: { kind: 'group' as const, id: 'c' }, bot: {}, items: [{ type: 'text' as const, text: 'x' }] }
      const origin = { id: String(seq), caller: null, door: 'webhook' } as const
      return { ...createDelivery(origin, seq, 0, request), results: [{ success: true, messageIds: [`old ${seq}`] }] }
    })
    claims.learn('c', past.reverse())
    // As many as the longest page of a history.
    const ids = ['own', ...Array.from({ length: 499 }, (_, index) => `old ${501 + index}`)]
    assert.equal(judge(pageOf(ids.map(id => entry(id, 61_000)))), 'absent')
  })

  for (const by of [-3_000, 3_000, 1_000]) {
    test(`is ${by === 1_000 ? 'not ' : ''}inconclusive when the machine's clock was set by ${by} ms during the call`, async () => {
      const { clock, judge } = await setUp()
      clock.step(by)
      assert.equal(judge(pageOf([entry('a', 61_000)])), by === 1_000 ? 'found a' : 'inconclusive')
    })
  }

  test('counts the settling time of a message of an earlier process from now, and where it left by the machine\'s clock', async () => {
    const { claims, judge } = await setUp()
    claims.drop('c', 'call')
    const restored = claims.restore('c', 'restored', { likeness: 'x', since: 20_000, settle })
    assert.equal(claims.settling('c', 'x'), settle)
    assert.deepEqual([9_000, 11_000].map(time => judge(pageOf([entry('a', time)]), restored)), ['inconclusive', 'found a'])
  })

  test('is overridden by the ID in an answer', async () => {
    const { claims, call } = await setUp()
    assert.equal(told(claims, call, [], pageOf([entry('a', 61_000)])), 'found a')
    const other = claims.begin('c', 'other', 'x', settle)
    claims.answered('c', 'call', { messageIds: ['b'] })
    assert.equal(told(claims, other, [], pageOf([entry('a', 61_000), entry('b', 62_000)])), 'found a')
  })
})
