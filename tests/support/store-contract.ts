import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { v7 as uuid } from 'uuid'
import { RelayError } from '../../src/errors'
import type { ParsedItem } from '../../src/message/model'
import { aboutOf } from '../../src/relay/delivery/about'
import { unfinished, type Delivery } from '../../src/relay/delivery/delivery'
import { noPosition, queueOf, type Store } from '../../src/relay/store/store'
import { toStored } from '../../src/relay/store/stored'
import { until } from './until'

const now = Date.now()
let position = 0
const text: ParsedItem = { type: 'text', text: 'build #4711 passed' }

/** A deferred delivery of one text, but for what is said otherwise. */
export function deliveryOf(changes: Partial<Delivery> = {}): Delivery {
  return {
    id: uuid(), state: 'queued', mode: 'single', deferred: true, target: { kind: 'group', id: '123456' }, caller: null, bot: 'onebot:10000', createdAt: now,
    updatedAt: now, expiresAt: now + 60_000, attempts: 0, results: [undefined], inDoubt: null, key: null, fingerprint: null, door: 'webhook',
    about: aboutOf([text], 'preview'), ...changes,
  }
}

/** What can be compared of a delivery: errors have a stack, and each change has its time. */
export function plain(delivery: Delivery | undefined): object {
  assert(delivery)
  return { ...toStored(delivery), updatedAt: 0 }
}

/** What every store has to do. */
export function storeContract(open: (t: TestContext) => Store | Promise<Store>): void {
  test('gives back whatever a delivery can hold', async t => {
    const store = await open(t)
    const delivery = deliveryOf({
      state: 'unanswered', mode: 'batch', target: { kind: 'private', id: '群 / \u2028%09' }, caller: 'CI 群 É', bot: 'a\tb\nc:é', createdAt: now + 0.25, attempts: 12,
      results: [{ success: true, messageIds: ['-2147483648', '🚀'] }, { success: false, error: new RelayError('refused', '禁言 🙊 \\ \' "') }],
      inDoubt: { indices: [0, 2], since: now + 0.5, before: ['-7'], settle: 30_000, calls: 1 }, key: 'k'.repeat(64), fingerprint: 'f'.repeat(64), door: 'hooks/告警',
      about: {
        items: [{ type: 'text', msg: '🚀 \\ \' "\u2028' }, { type: 'file', name: '报告.pdf', size: 7 }, { type: 'invalid' }], waited: 0.5, platformTime: 12.25,
        calls: [{ at: now + 0.5, took: 3.25, outcome: 'refused', reason: '禁言' }, { at: now + 4, took: 9, outcome: 'unanswered' }],
      },
    })
    await store.insert(delivery, noPosition, [])
    assert.deepEqual(plain(await store.get(delivery.id)), plain(delivery))
    assert.deepEqual(plain(await store.findByKey('k'.repeat(64))), plain(delivery))
    assert.equal(await store.get(uuid()), undefined)
    assert.equal(await store.findByKey('another'), undefined)
  })

  test('gives back items of any size as they were, and forgets them with their delivery', async t => {
    const store = await open(t)
    // With an odd and with an even start, so that the halves of a surrogate pair come to stand on both sides of a cut.
    const long = ['', 'x'].map((start): ParsedItem => ({ type: 'text', text: start + '🚀'.repeat(700_000) }))
    const large = deliveryOf()
    await store.insert(large, ++position, [...long, text])
    await store.insert(deliveryOf(), ++position, [text])
    const queue = queueOf(large.bot, large.target)
    assert.deepEqual((await store.next(queue, position))?.items, [...long, text])
    await store.update(large, unfinished, { state: 'sending', inDoubt: { indices: [0], since: 1, before: [], settle: 30_000, calls: 1 } })
    assert.deepEqual((await store.interrupted(queue))?.items, [...long, text])
    assert.deepEqual((await store.next(queue, position))?.items, [text])
    await store.update(large, ['sending'], { state: 'queued', inDoubt: null })
    await store.discard(large.id)
    assert.equal(await store.getQueued(large.id), undefined)
  })

  test('changes a delivery only from the states that are named, and tells whether it did', async t => {
    const store = await open(t)
    const delivery = deliveryOf({ key: 'k' })
    await store.insert(delivery, ++position, [text])
    assert.equal(await store.update(delivery, ['sending'], { state: 'sent' }), false)
    assert.equal(delivery.state, 'queued')
    assert.equal(await store.update(delivery, unfinished, { state: 'sending', inDoubt: { indices: [0], since: 1, before: [], settle: 30_000, calls: 1 } }), true)
    assert.equal((await store.get(delivery.id))?.state, 'sending')
    const results = [{ success: true as const, messageIds: ['5'] }]
    assert.equal(await store.update(delivery, unfinished, { state: 'sent', results, inDoubt: null }), true)
    assert.deepEqual(plain(await store.get(delivery.id)), plain(delivery))
    assert.equal(delivery.state, 'sent')
    // After the end, as when an answer comes late.
    assert.equal(await store.update(delivery, ['unanswered'], { state: 'failed' }), false)
    assert.equal(await store.update(delivery, ['sent'], { attempts: 3 }), true)
    assert.equal((await store.get(delivery.id))?.attempts, 3)
    assert.equal(await store.update(deliveryOf(), unfinished, { state: 'sent' }), false)
  })

  test('gives a key to one delivery until it is released', async t => {
    const store = await open(t)
    const first = deliveryOf({ key: 'one', deferred: false })
    await store.insert(first, noPosition, [text])
    await assert.rejects(async () => store.insert(deliveryOf({ key: 'one', deferred: false }), noPosition, [text]))
    await store.insert(deliveryOf(), ++position, [text])
    await store.insert(deliveryOf(), ++position, [text])
    await store.update(first, unfinished, { state: 'failed', key: null })
    assert.equal(await store.findByKey('one'), undefined)
    const second = deliveryOf({ key: 'one', deferred: false })
    await store.insert(second, noPosition, [text])
    await store.releaseKey('one')
    assert.equal(await store.findByKey('one'), undefined)
    assert.equal((await store.get(second.id))?.key, null)
  })

  test('hands out what waits in a queue, in the order of positions', async t => {
    const store = await open(t)
    const [first, second, awaited] = [deliveryOf(), deliveryOf(), deliveryOf({ deferred: false })]
    const elsewhere = deliveryOf({ target: { kind: 'private', id: '123456' } })
    const [one, two, three] = [++position, ++position, ++position]
    await store.insert(second, two, [text])
    await store.insert(first, one, [text])
    await store.insert(elsewhere, three, [text])
    await store.insert(awaited, noPosition, [text])
    const queue = queueOf(first.bot, first.target)
    const names = (await store.queues()).map(({ queue: name }) => name).sort()
    assert.deepEqual(names, [queue, queueOf(elsewhere.bot, elsewhere.target)].sort())
    assert.deepEqual(await store.waiting(queue), { count: 2, last: two })
    assert.equal((await store.backlog()).size, 3)
    assert.equal((await store.backlog()).oldest, now)
    const next = await store.next(queue, two)
    assert.deepEqual({ ...next, delivery: next?.delivery.id }, { delivery: first.id, position: one, items: [text], isOurs: true })
    assert(next)
    await store.update(next.delivery, ['queued'], { state: 'sending' })
    assert.equal((await store.interrupted(queue))?.delivery.id, first.id)
    assert.equal(await store.next(queue, one), undefined)
    assert.equal((await store.next(queue, two))?.delivery.id, second.id)
    assert.deepEqual(await store.waiting(queue), { count: 1, last: two })
    await store.update(next.delivery, ['sending'], { state: 'sent', results: [{ success: true, messageIds: [] }] })
    assert.equal(await store.interrupted(queue), undefined)
  })

  test('lets go of what waits and has not begun to leave', async t => {
    const store = await open(t)
    const [queued, sending, awaited] = [deliveryOf(), deliveryOf(), deliveryOf({ deferred: false })]
    const doubted = deliveryOf({ inDoubt: { indices: [0], since: now, before: [], settle: 0, calls: 1 } })
    await store.insert(doubted, ++position, [text])
    await store.insert(queued, ++position, [text])
    await store.insert(sending, ++position, [text])
    await store.insert(awaited, noPosition, [text])
    await store.update(sending, ['queued'], { state: 'sending' })
    assert.equal(await store.withdraw(queued.id), true)
    for (const { id } of [sending, awaited, doubted]) assert.equal(await store.withdraw(id), false)
    assert.equal(await store.get(queued.id), undefined)
    assert.equal(await store.withdraw(queued.id), false)
    const told = deliveryOf()
    await store.insert(told, ++position, [text])
    await store.discard(told.id)
    assert.equal(await store.get(told.id), undefined)
  })

  test('gives what has to be sent again a new place', async t => {
    const store = await open(t)
    const [again, later] = [deliveryOf(), deliveryOf()]
    await store.insert(again, ++position, [text])
    await store.insert(later, ++position, [text])
    const queue = queueOf(again.bot, again.target)
    position++
    assert.equal(await store.requeue(again, ['failed'], { state: 'queued' }, position), false)
    assert.equal(await store.requeue(again, ['queued'], { state: 'queued', expiresAt: now + 5 }, position), true)
    assert.equal((await store.next(queue, position))?.delivery.id, later.id)
    assert.equal((await store.getQueued(again.id))?.position, position)
  })

  test('does not send again what has changed since it was read', async t => {
    const store = await open(t)
    const delivery = deliveryOf()
    await store.insert(delivery, ++position, [text])
    const read = { ...delivery }
    await until('the clock has gone on', () => Date.now() > delivery.updatedAt + 2)
    assert.equal(await store.update(delivery, ['queued'], { state: 'queued', attempts: 1 }), true)
    const place = position
    assert.equal(await store.amend(read, ['queued'], { state: 'failed' }), false)
    assert.equal(await store.requeue(read, ['queued'], { state: 'queued' }, ++position), false)
    assert.equal((await store.getQueued(delivery.id))?.position, place)
    assert.equal(await store.requeue(delivery, ['queued'], { state: 'queued' }, position), true)
    assert.equal(await store.amend(delivery, ['failed'], { state: 'failed' }), false)
    assert.equal(await store.amend(delivery, ['queued'], { state: 'failed' }), true)
    assert.equal((await store.get(delivery.id))?.state, 'failed')
  })

  test('finds what is overdue among what waits', async t => {
    const store = await open(t)
    const [late, early] = [deliveryOf({ expiresAt: now - 1 }), deliveryOf()]
    const awaited = deliveryOf({ expiresAt: null, deferred: false })
    await store.insert(late, ++position, [text])
    await store.insert(early, ++position, [text])
    await store.insert(awaited, noPosition, [text])
    assert.deepEqual((await store.overdue('queued', now)).map(({ id }) => id), [late.id])
    assert.deepEqual(await store.overdue('sending', now), [])
  })

  test('lists by state, target and age, the newest first', async t => {
    const store = await open(t)
    const elsewhere = { kind: 'group', id: '1234567' } as const
    const ended = { deferred: false, results: [{ success: true as const, messageIds: ['1'] }] }
    const all: Delivery[] = []
    for (let index = 0; index < 12; index++) {
      const delivery = deliveryOf({ ...ended, state: index % 3 === 0 ? 'failed' : 'sent', ...index % 2 === 0 && { target: elsewhere } })
      await store.insert(delivery, noPosition, [])
      all.push(delivery)
    }
    const ids = (deliveries: Delivery[]): string[] => deliveries.map(({ id }) => id)
    const newest = ids(all).reverse()
    assert.deepEqual(ids(await store.list({ limit: 5 })), newest.slice(0, 5))
    assert.deepEqual(ids(await store.list({ limit: 5, before: newest[4] ?? '' })), newest.slice(5, 10))
    assert.deepEqual(ids(await store.list({ limit: 50, states: ['failed'] })), ids(all.filter(({ state }) => state === 'failed')).reverse())
    const both = all.filter(({ state, target }) => state === 'sent' && target === elsewhere)
    assert.deepEqual(ids(await store.list({ limit: 50, states: ['sent'], targets: [elsewhere] })), ids(both).reverse())
  })

  test('lists by the key of the caller, before the limit, and tells names apart that differ in case only', async t => {
    const store = await open(t)
    const callers = [null, 'ci', 'CI', 'cí', 'ci ', 'nightly']
    const all = Array.from({ length: 12 }, (_, index) => {
      const state = index < 6 ? 'sent' : 'failed'
      return deliveryOf({ deferred: false, state, results: [{ success: true, messageIds: ['1'] }], caller: callers[index % 6] ?? null })
    })
    for (const delivery of all) await store.insert(delivery, noPosition, [])
    for (const caller of ['ci', 'CI', 'cí', 'ci ', 'nightly']) {
      const own = all.filter(delivery => delivery.caller === caller).reverse()
      assert.deepEqual((await store.list({ limit: 5, caller })).map(plain), own.map(plain))
      assert.deepEqual((await store.list({ limit: 1, caller, states: ['sent'], targets: [{ kind: 'group', id: '123456' }] })).map(plain), [own[1]].map(plain))
    }
    assert.deepEqual(await store.list({ limit: 5, caller: 'nobody' }), [])
  })
}
