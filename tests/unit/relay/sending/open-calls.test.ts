import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ParsedItem } from '../../../../src/message/model'
import { OpenCalls, settlingTime } from '../../../../src/relay/sending/open-calls'
import { deliveryOf } from '../../../support/store-contract'

const minute = 60_000
const least = 30_000

describe('settlingTime', () => {
  test('grows with what is known to be carried, at 256 KiB a second', () => {
    assert.equal(settlingTime([{ type: 'text', bytes: 0 }], least), least)
    assert.equal(settlingTime([{ type: 'image', bytes: 256 * 1024 }], least), least + 1_000)
    assert.equal(settlingTime([{ type: 'image', bytes: 512 * 1024 }, { type: 'text', bytes: 0 }, { type: 'image', bytes: 256 * 1024 }], least), least + 3_000)
  })

  test('is ten minutes for what a platform converts, and where nobody knows how much it is', () => {
    for (const type of ['file', 'video', 'audio'] as const) assert.equal(settlingTime([{ type, bytes: 1 }], least), 10 * minute)
    assert.equal(settlingTime([{ type: 'text', bytes: 0 }, { type: 'image', bytes: undefined }], least), 10 * minute)
  })

  test('is no longer than that for a large picture, and no shorter than a call may take', () => {
    assert.equal(settlingTime([{ type: 'image', bytes: 2 ** 30 }], least), 10 * minute)
    assert.equal(settlingTime([{ type: 'file', bytes: 1 }], 15 * minute), 15 * minute)
  })
})

describe('OpenCalls', () => {
  const hello: ParsedItem[] = [{ type: 'text', text: 'hello' }]
  const first = { indices: [0], settle: 5_000 }

  /** Calls that are noted by a clock which is set here. */
  function stage(): { calls: OpenCalls, at: (time: number) => void } {
    let now = 1_000
    return {
      calls: new OpenCalls(() => now),
      at: time => {
        now = time
      },
    }
  }

  test('count from when the call left, however often it is asked', () => {
    const { calls, at } = stage()
    const delivery = deliveryOf({})
    at(60_000)
    calls.note(delivery, hello, first, 58_000)
    assert.equal(calls.left(delivery, hello, first), 3_000)
    at(62_999)
    assert.equal(calls.left(delivery, hello, first), 1)
    at(63_000)
    assert.equal(calls.left(delivery, hello, first), 0)
  })

  test('of an earlier process count from the start of this one', () => {
    const { calls, at } = stage()
    at(4_000)
    assert.equal(calls.left(deliveryOf({}), hello, first), 2_000)
  })

  test('share the latest of their times with equal messages to the same target, and with no other', () => {
    const { calls, at } = stage()
    const [one, two, other] = [deliveryOf({}), deliveryOf({}), deliveryOf({ target: { kind: 'group', id: '654321' } })]
    at(60_000)
    calls.note(one, hello, first, 58_000)
    calls.note(two, hello, first, 60_000)
    calls.note(other, hello, first, 57_000)
    assert.equal(calls.left(one, hello, first), 5_000)
    assert.equal(calls.left(other, hello, first), 2_000)
    const different: ParsedItem[] = [{ type: 'text', text: 'bye' }]
    assert.equal(calls.left(deliveryOf({}), different, first), 0)
    // None of its own was made in this process, but one that cannot be told apart from it was.
    assert.equal(calls.left(deliveryOf({}), hello, first), 5_000)
  })
})
