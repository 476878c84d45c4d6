import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { RelayError } from '../../../../src/errors'
import {
  abandon, createDelivery, doubtOf, leave, postpone, retry, settle, withLate, type Delivery, type ItemResult,
} from '../../../../src/relay/delivery/delivery'
import { backoff } from '../../../../src/relay/sending/attempts'
import { compose } from '../../../../src/relay/sending/compose'

const sent: ItemResult = { success: true, messageIds: ['-1'] }
const failed = (code: 'refused' | 'unsent' | 'unanswered' | 'expired' | 'stopping'): ItemResult => ({ success: false, error: new RelayError(code) })

function deliveryOf(count: number, changes: Partial<Delivery> = {}): Delivery {
  const items = Array.from({ length: count }, () => ({ type: 'text' as const, text: 'x' }))
  const request = { mode: 'batch' as const, target: { kind: 'group' as const, id: '1' }, bot: {}, items }
  return { ...createDelivery('id', Date.now(), request, { key: 'k', fingerprint: 'f' }), ...changes }
}

describe('a delivery', () => {
  test('begins queued, with nothing known', () => {
    const { state, results, attempts, inDoubt, key } = deliveryOf(2)
    assert.deepEqual({ state, results, attempts, inDoubt, key }, { state: 'queued', results: [undefined, undefined], attempts: 0, inDoubt: null, key: 'k' })
  })

  test('is in doubt from when it leaves', () => {
    const leaving = { indices: [0], since: 5, before: ['7'], settle: 30_000, calls: 1 }
    assert.deepEqual(leave(deliveryOf(2), leaving), { state: 'sending', results: [undefined, undefined], inDoubt: leaving })
  })

  test('looks for what went unanswered before from when that left', () => {
    const delivery = deliveryOf(2, { results: [failed('unanswered'), undefined], inDoubt: { indices: [0], since: 5, before: ['7'], settle: 30_000, calls: 1 } })
    assert.deepEqual(leave(delivery, { indices: [1], since: 9, before: ['8'], settle: 30_000, calls: 1 }).inDoubt, { indices: [1], since: 5, before: ['7'], settle: 30_000, calls: 1 })
  })

  const ends: [string, (ItemResult | undefined)[], string, boolean][] = [
    ['all arrived', [sent, sent], 'sent', true],
    ['one was refused', [sent, failed('refused')], 'failed', true],
    ['none left', [failed('unsent'), undefined], 'failed', false],
    ['one may have arrived', [failed('refused'), failed('unanswered')], 'unanswered', true],
    ['the time was over', [failed('expired'), failed('expired')], 'expired', false],
    ['the time was over for the rest', [sent, failed('expired')], 'expired', true],
  ]
  for (const [what, results, state, keepsKey] of ends) {
    test(`is ${state} when ${what}, and ${keepsKey ? 'keeps' : 'frees'} its key`, () => {
      const change = settle(deliveryOf(2), results)
      assert.equal(change.state, state)
      assert.equal('key' in change, !keepsKey)
    })
  }

  test('stays in doubt with what went unanswered, and with nothing else', () => {
    const delivery = deliveryOf(3, { createdAt: 3 })
    assert.deepEqual(doubtOf(delivery, [sent, failed('unanswered'), undefined]), { indices: [1], since: 3, before: [], settle: 0, calls: 0 })
    assert.equal(doubtOf(delivery, [sent, failed('refused'), undefined]), null)
  })

  test('waits again when nothing could be sent, and keeps what is known', () => {
    assert.deepEqual(postpone([sent, failed('unsent'), failed('stopping')], null), { state: 'queued', inDoubt: null, results: [sent, undefined, undefined] })
  })

  test('that is given up is unanswered as far as it was leaving', () => {
    const results = abandon(deliveryOf(3, { results: [sent, undefined, undefined], inDoubt: { indices: [1], since: 5, before: [], settle: 30_000, calls: 1 } }), new RelayError('expired'))
    assert.deepEqual(results.map(result => result?.success ? 'sent' : result?.error.code), ['sent', 'unanswered', 'expired'])
  })

  test('is sent again as far as it has not arrived, with all its attempts, and looks first for what went unanswered', () => {
    const delivery = deliveryOf(3, { results: [sent, failed('unanswered'), failed('refused')], inDoubt: { indices: [1], since: 5, before: ['7'], settle: 30_000, calls: 1 } })
    assert.deepEqual(retry(delivery, 99), {
      state: 'queued', deferred: true, expiresAt: 99, inDoubt: { indices: [1], since: 5, before: ['7'], settle: 30_000, calls: 0 }, results: [sent, undefined, undefined],
    })
  })

  test('takes answers that come late, unless more was known', () => {
    const late = new Map<number, ItemResult>([[0, { success: true, messageIds: ['late'] }], [1, { success: true, messageIds: ['late'] }]])
    assert.deepEqual(withLate([sent, failed('unanswered')], late), [sent, { success: true, messageIds: ['late'] }])
  })
})

describe('composing', () => {
  type Type = 'text' | 'image' | 'file' | 'video'
  const item = (type: Type, weight = 0) => ({ type, weight })
  const types = (...items: Type[]) => compose(items.map(type => item(type)), 100).map(message => message.map(({ type }) => type).join('+'))

  test('puts text and images into one message, in their order', () => {
    assert.deepEqual(types('text', 'image', 'image', 'text'), ['text+image+image+text'])
  })

  test('lets a video stand alone and keeps the order around it', () => {
    assert.deepEqual(types('text', 'video', 'image', 'text', 'video', 'video'), ['text', 'video', 'image+text', 'video', 'video'])
  })

  test('sends each file by itself, after the rest', () => {
    assert.deepEqual(types('file', 'text', 'file', 'image'), ['text+image', 'file', 'file'])
  })

  test('divides what would not fit into one frame', () => {
    const messages = compose([item('image', 60), item('image', 60), item('text'), item('image', 40), item('file', 500)], 100)
    assert.deepEqual(messages.map(message => message.map(({ weight }) => weight)), [[60], [60, 0, 40], [500]])
  })

  test('makes nothing of nothing', () => {
    assert.deepEqual(types(), [])
  })
})

describe('backing off', () => {
  test('starts at 200 ms and doubles, with up to half of it as jitter', () => {
    assert.deepEqual([1, 2, 3].map(failures => backoff(failures, 0)), [200, 400, 800])
    assert.equal(backoff(1, 0.999).toFixed(0), '300')
  })

  test('has an end', () => {
    assert.equal(backoff(50, 0), 30_000)
  })
})
