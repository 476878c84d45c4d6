import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import { RelayError } from '../../../src/errors'
import type { ParsedItem } from '../../../src/message/model'
import type { Account } from '../../../src/platform/port'
import type { Delivery } from '../../../src/relay/delivery/delivery'
import { FollowUps } from '../../../src/relay/follow-ups'
import { OpenCalls } from '../../../src/relay/sending/open-calls'
import { Queues } from '../../../src/relay/sending/queue'
import { Clock } from '../../../src/relay/store/clock'
import { MemoryStore } from '../../../src/relay/store/memory-store'
import { noPosition } from '../../../src/relay/store/store'
import { deliveryOf } from '../../support/store-contract'

beforeEach(() => {
  mock.timers.enable({ apis: ['setTimeout'] })
})
afterEach(() => mock.timers.reset())

const minute = 60_000
const mebibyte = 1024 * 1024

interface Stage {
  followUps: FollowUps
  store: MemoryStore
  /** Adds a delivery without an answer, of a text of this length, which settles so many milliseconds from now. */
  add: (length?: number, settle?: number) => Delivery
  /** Those whose content was read. */
  read: string[]
  /** Through which bots it was looked for a message. */
  looked: string[]
  /** Whether the bots are online; at first they are. */
  setOnline: (isOnline: boolean) => void
}

function accountOf(sid: string, isOnline: boolean): Account {
  return {
    sid, isOnline, platform: 'onebot', selfId: '10000', name: '', checkIds: () => undefined, recent: () => [],
    message: () => assert.fail('nothing is sent'), recall: () => Promise.resolve(), groups: () => Promise.resolve([]),
    friends: () => Promise.resolve([]), onOffline: () => () => undefined, onOnline: () => () => undefined,
  }
}

function stage(keepsItems: boolean): Stage {
  const store = new MemoryStore(new Clock())
  const read: string[] = []
  const looked: string[] = []
  let isOnline = true
  const followUps = new FollowUps({
    queues: new Queues({ interval: 0, capacity: 1000, pauseAfter: 0, pauseFor: 0 }, () => undefined),
    worker: {
      reconcile(_slot, { delivery: { bot } }) {
        looked.push(bot)
        return Promise.resolve(undefined)
      },
    },
    runtime: { openCalls: new OpenCalls(() => 0), policy: { retries: 0 }, port: { find: sid => accountOf(sid, isOnline) } },
    keepsItems: () => keepsItems,
    readItems(id) {
      read.push(id)
      const items = store.items(id)
      return items ? Promise.resolve(items) : Promise.reject(new RelayError('not-found'))
    },
    sendAgain: () => Promise.resolve(),
  })
  let count = 0
  return {
    followUps, store, read, looked,
    setOnline(value) {
      isOnline = value
    },
    add(length = 1, settle = 0) {
      const delivery = deliveryOf({
        state: 'unanswered', bot: `onebot:${count++}`, inDoubt: { indices: [0], since: 0, before: [], settle, calls: 1 },
        results: [{ success: false, error: new RelayError('unanswered') }],
      })
      const items: ParsedItem[] = [{ type: 'text', text: 'x'.repeat(length) }]
      store.insert(delivery, noPosition, items)
      followUps.add(delivery, store, items)
      return delivery
    },
  }
}

/** Lets time pass, and promises that are resolved call back. */
async function pass(time: number): Promise<void> {
  mock.timers.tick(time)
  for (let i = 0; i < 50; i++) await Promise.resolve()
}

describe('what looks for deliveries without an answer', () => {
  test('reads what was to be sent when it is time, where that is kept', async () => {
    const { add, read, looked } = stage(true)
    const { id, bot } = add()
    await pass(minute - 1)
    assert.deepEqual(read, [])
    await pass(1)
    assert.deepEqual([read, looked], [[id], [bot]])
    await pass(4 * minute)
    assert.deepEqual([read, looked], [[id, id], [bot, bot]])
    await pass(60 * minute)
    assert.equal(looked.length, 2)
  })

  test('looks once more when it has settled, also after a reload', async () => {
    const { followUps, add, looked } = stage(true)
    const { bot } = add(1, 10 * minute)
    followUps.pause()
    followUps.resume()
    for (const time of [minute, 4 * minute, 5 * minute]) await pass(time)
    assert.deepEqual(looked, [bot, bot])
    await pass(1_001)
    assert.deepEqual(looked, [bot, bot, bot])
  })

  test('looks as soon as it can where the bot is offline', async () => {
    const { add, looked, setOnline } = stage(true)
    const { bot } = add()
    setOnline(false)
    for (let count = 0; count < 10; count++) await pass(minute)
    assert.deepEqual(looked, [])
    setOnline(true)
    await pass(minute)
    assert.deepEqual(looked, [bot])
    await pass(4 * minute)
    assert.deepEqual(looked, [bot, bot])
  })

  test('stops when it has settled, and looks no more often for one that is sent again', async () => {
    const { followUps, store, add, looked } = stage(true)
    const [found, again] = [add(), add()]
    followUps.add(again, store, [])
    await pass(minute)
    assert.equal(looked.length, 2)
    store.update(found, ['unanswered'], { state: 'sent' })
    await pass(4 * minute)
    assert.deepEqual(looked.filter(sid => sid === again.bot), [again.bot, again.bot])
    assert.equal(looked.length, 3)
  })

  test('holds what is kept nowhere else, up to a length', async () => {
    const { add, read, looked } = stage(false)
    const first = add(9 * mebibyte)
    add(9 * mebibyte)
    const third = add()
    await pass(minute)
    assert.deepEqual([read, looked], [[], [first.bot, third.bot]])
    await pass(60 * minute)
    looked.length = 0
    const next = add(9 * mebibyte)
    await pass(minute)
    assert.deepEqual(looked, [next.bot])
  })

  test('looks for so many deliveries, however often for each', async () => {
    const { followUps, add, looked } = stage(true)
    for (let count = 0; count < 1001; count++) add()
    await pass(minute)
    assert.equal(looked.length, 1000)
    followUps.pause()
    await pass(60 * minute)
    assert.equal(looked.length, 1000)
  })
})
