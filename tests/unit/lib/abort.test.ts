import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, test } from 'node:test'
import { onAbort } from '../../../src/lib/abort'

describe('onAbort', () => {
  test('calls everybody back once, and nobody who has gone', () => {
    const controller = new AbortController()
    const called: string[] = []
    onAbort(controller.signal, () => called.push('one'))
    const leave = onAbort(controller.signal, () => called.push('gone'))
    onAbort(controller.signal, () => called.push('two'))
    leave()
    leave()
    controller.abort()
    controller.abort()
    assert.deepEqual(called.sort(), ['one', 'two'])
  })

  test('lets one that is called back end the watch of another', () => {
    const controller = new AbortController()
    let count = 0
    const leaves: (() => void)[] = []
    const callback = (): void => {
      count++
      for (const leave of leaves) leave()
    }
    for (let index = 0; index < 3; index++) leaves.push(onAbort(controller.signal, () => callback()))
    controller.abort()
    assert.equal(count, 1)
  })

  test('has one listener on the signal, however many there are', () => {
    const { signal } = new AbortController()
    for (let index = 0; index < 100; index++) onAbort(signal, () => undefined)
    assert.equal(getEventListeners(signal, 'abort').length, 1)
  })
})
