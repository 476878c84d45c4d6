import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { backoff } from '../../../src/relay/backoff'
import { compose } from '../../../src/relay/compose'

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
