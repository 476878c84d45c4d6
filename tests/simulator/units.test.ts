import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeCq, encodeCq } from '../../simulator/cqcode'
import { isLoopbackHost } from '../../simulator/guards'
import { sniff } from '../../simulator/page-media'
import { Ring } from '../../simulator/ring'

test('CQ strings there and back', () => {
  const segments = [
    { type: 'text', data: { text: 'a & [b], &#44;' } },
    { type: 'image', data: { file: 'x[1],2&.png', url: 'http://127.0.0.1/?a=1&b=2' } },
    { type: 'text', data: { text: '\n尾' } },
    { type: 'face', data: { id: '5' } },
  ]
  assert.deepEqual(decodeCq(encodeCq(segments)), segments)
})

test('what is no CQ code is text', () => {
  for (const source of ['[CQ:]', '[CQ:at', 'a[b]', '[CQ:1]']) assert.deepEqual(decodeCq(source), [{ type: 'text', data: { text: source } }])
  assert.deepEqual(decodeCq(''), [])
})

test('a ring keeps the newest within number and weight, and tells what it drops', () => {
  const dropped: string[] = []
  const ring = new Ring<string>(3, 10, item => dropped.push(item))
  for (const item of ['a', 'b', 'c', 'd']) ring.push(item, 1)
  assert.deepEqual([ring.items, dropped], [['b', 'c', 'd'], ['a']])
  ring.push('e', 8)
  assert.deepEqual([ring.items, dropped], [['c', 'd', 'e'], ['a', 'b']])
  ring.push('f', 100)
  assert.deepEqual(ring.items, ['f'])
  const unlimited = new Ring<number>(0, 1)
  for (let item = 0; item < 100; item++) unlimited.push(item, 5)
  assert.equal(unlimited.items.length, 100)
})

test('this machine and others', () => {
  for (const host of ['localhost', '127.0.0.1', '127.8.8.8', '::1', '[::1]']) assert(isLoopbackHost(host), host)
  for (const host of ['127.0.0.1.example', 'localhost.example', '10.0.0.1', '0.0.0.0', '', '128.0.0.1']) assert(!isLoopbackHost(host), host)
})

test('tells pictures, sounds and films by their bytes, and nothing that can run', () => {
  assert.equal(sniff(Buffer.from('ffd8ffe000104a46', 'hex')), 'image/jpeg')
  assert.equal(sniff(Buffer.from('00000018667479706d703432', 'hex')), 'video/mp4')
  assert.equal(sniff(Buffer.from('52494646000000005745425056503820', 'hex')), 'image/webp')
  assert.equal(sniff(Buffer.from('<svg xmlns')), null)
  assert.equal(sniff(Buffer.from('see GIF89a')), null)
  assert.equal(sniff(Buffer.from('<!doctype html>')), null)
  assert.equal(sniff(Buffer.alloc(0)), null)
})
