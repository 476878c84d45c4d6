import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { RelayError } from '../../../../src/errors'
import {
  again, createDelivery, end, failRest, leave, outcomeOf, partsFor, postpone, withSent,
  type Delivery, type ItemResult, type Open, type Results,
} from '../../../../src/relay/delivery/delivery'

const sent: ItemResult = { success: true, messageIds: ['-1'] }
const failed = (code: 'refused' | 'unsent' | 'unanswered' | 'expired' | 'stopping'): ItemResult => ({ success: false, error: new RelayError(code) })
const open = (index: number, calls = 1): Open => ({ indices: [index], likeness: 'x', since: 5, settle: 30_000, calls })

function deliveryOf(count: number, changes: Partial<Delivery> = {}): Delivery {
  const items = Array.from({ length: count }, () => ({ type: 'text' as const, text: 'x' }))
  const request = { mode: 'batch' as const, target: { kind: 'group' as const, id: '1' }, bot: {}, items }
  const made = createDelivery({ id: 'id', caller: null, door: 'webhook' }, 7, 3, request, { key: 'k', fingerprint: 'f' })
  return { ...made, ...partsFor(request, 'none'), ...changes }
}

const told = (results: Results = []): string[] => results.map(result => result === undefined ? '-' : outcomeOf(result))

describe('a delivery', () => {
  test('begins queued, with nothing known', () => {
    const { state, seq, results, attempts, open, key } = deliveryOf(2)
    assert.deepEqual([state, seq, results, attempts, open, key], ['queued', 7, [undefined, undefined], 0, [], 'k'])
  })

  test('has a message open from when it leaves, in the place of an earlier call of the same items', () => {
    const results = [undefined, undefined]
    assert.deepEqual(leave(deliveryOf(2, { open: [open(0), open(1)] }), results, open(1, 2)), { state: 'sending', results, open: [open(0), open(1, 2)] })
  })

  test('keeps what was answered late when a further message leaves', () => {
    const { results } = leave(deliveryOf(3, { results: [sent, undefined, undefined] }), [failed('unanswered'), undefined, undefined], open(1))
    assert.deepEqual(told(results), ['sent', '-', '-'])
  })

  const ends: [what: string, results: Results, state: string, keepsKey: boolean, open: number[]][] = [
    ['all arrived', [sent, sent], 'sent', true, []],
    ['one was refused', [sent, failed('refused')], 'failed', true, []],
    ['all were refused', [failed('refused'), failed('refused')], 'failed', false, []],
    ['none left', [failed('unsent'), undefined], 'failed', false, []],
    ['one may have arrived', [failed('refused'), failed('unanswered')], 'unanswered', true, [1]],
    ['the time was over', [failed('expired'), failed('expired')], 'expired', false, []],
    ['the time was over for the rest', [sent, failed('expired')], 'expired', true, []],
  ]
  for (const [what, results, state, keepsKey, left] of ends) {
    test(`is ${state} when ${what}, and ${keepsKey ? 'keeps' : 'frees'} its key`, () => {
      const change = end(deliveryOf(2, { open: [open(0), open(1)] }), results)
      assert.deepEqual([change.state, change.key, change.open], [state, keepsKey ? 'k' : null, left.map(index => open(index))])
    })
  }

  test('waits again when not all could be sent, and keeps what is known and what is open', () => {
    const results = [sent, failed('unsent'), failed('stopping'), failed('unanswered'), failed('refused')]
    const change = postpone(deliveryOf(5, { open: [open(0), open(3)] }), results)
    assert.deepEqual([change.state, told(change.results), change.open], ['queued', ['sent', '-', '-', '-', 'refused'], [open(3)]])
  })

  test('that ends for a reason is unanswered where it was open', () => {
    assert.deepEqual(told(failRest(deliveryOf(3, { results: [sent, undefined, undefined], open: [open(1)] }), new RelayError('expired'))), ['sent', 'unanswered', 'unsent'])
  })

  test('is sent again as far as it has not arrived, with all its calls', () => {
    const change = again(deliveryOf(3, { results: [sent, failed('unanswered'), failed('refused')], open: [open(1, 2)] }), 9)
    assert.deepEqual(change, { state: 'queued', seq: 9, results: [sent, undefined, undefined], open: [open(1, 0)] })
  })

  test('takes a late success for the items of its message', () => {
    const late = { success: true as const, messageIds: ['late'] }
    assert.deepEqual(withSent([sent, failed('unanswered'), undefined], [1, 2], late), [sent, late, late])
  })
})
