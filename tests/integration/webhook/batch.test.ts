import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Call } from '../../../simulator/types'
import { read, useRelay } from '../../support/relay'
import { batchOf, group, only, outline, sends, sha256, shape, user, type BatchData } from './support'

const retries = 1
const relay = useRelay({ config: { chatApiTimeout: 5, chatApiMaxRetries: retries } })

const text = (msg: string) => ({ type: 'text', msg })
const image = (content = 'picture') => ({ type: 'image', url: `base64://${Buffer.from(content).toString('base64')}` })
const video = (content = 'film') => ({ type: 'video', url: `base64://${Buffer.from(content).toString('base64')}` })
const file = (content = 'file') => ({ type: 'file', url: `base64://${Buffer.from(content).toString('base64')}` })

async function send(messages: unknown[], target: object = { group_id: group }): Promise<BatchData> {
  const data = batchOf(await relay.send({ ...target, messages }))
  assert.equal(data.total, messages.length)
  return data
}

/** Each result as `ok` or as its code. */
function codes({ results }: BatchData): (string | number | undefined)[] {
  return results.map(({ success, code }) => success ? 'ok' : code)
}

/** A match for calls that carry this text or these bytes. */
function carrying(...contents: string[]): (call: Call) => boolean {
  const needles = contents.flatMap(content => [content, Buffer.from(content).toString('base64')])
  return ({ params }) => needles.some(needle => JSON.stringify(params).includes(needle))
}

describe('a batch', () => {
  test('of which an item fails is a failure with fail=any: no data, and its results and outcome in error', async () => {
    for (const [items, outcome] of [[[text('a'), text(' ')], undefined], [[text(' '), text('')], 'unsent']] as const) {
      const { status, msg, error, headers } = await read(await relay.request('/webhook?fail=any', {
        method: 'POST', body: JSON.stringify({ group_id: group, messages: items, more: 1 }),
      }))
      const { results, delivery_id: id, success, ...rest } = error
      assert.deepEqual([status, msg], [502, `${items.length - Number(success)} of 2 failed`])
      assert.deepEqual(rest, { id: 'failed', ...outcome && { outcome }, total: 2, failed: 2 - Number(success), ignored: ['more'] })
      assert(Array.isArray(results) && results.length === 2)
      assert.equal(id, headers.get('x-request-id'))
    }
  })

  test('combines text and images into one platform message, in their order, with nothing inserted', async () => {
    const data = await send([text('a'), image('1'), text('b\n'), text(' <b>'), image('2'), image('1'), text('d')], { user_id: user })
    const entry = only(relay.simulator.ledger)
    assert.deepEqual(entry.target, { type: 'private', id: user })
    assert.deepEqual(shape(entry), ['text:a', 'image', 'text:b\n', 'text: <b>', 'image', 'image', 'text:d'])
    assert.deepEqual(entry.media.map(medium => medium.sha256), ['1', '2', '1'].map(sha256))
    assert.equal(sends(relay).length, 1)
    for (const { message_ids } of data.results) assert.deepEqual(message_ids, [String(entry.messageId)])
  })

  test('never lets a video share a platform message, and keeps the order around it', async () => {
    const data = await send([text('a'), video('1'), text('b'), image('2'), video('3'), video('4'), text('c')])
    assert.deepEqual(relay.simulator.ledger.map(shape), [['text:a'], ['video'], ['text:b', 'image'], ['video'], ['video'], ['text:c']])
    assert.deepEqual(
      data.results.map(({ message_ids }) => message_ids),
      [0, 1, 2, 2, 3, 4, 5].map(index => [String(relay.simulator.ledger[index]?.messageId)]),
    )
  })

  test('sends each file by itself, after everything else, in order', async () => {
    const data = await send([file('1'), text('a'), file('2'), image('b'), video('c'), file('3')])
    assert.deepEqual(outline(relay), ['a[image]', '[video]', '[file]', '[file]', '[file]'])
    assert.deepEqual(relay.simulator.ledger.slice(2).map(({ media }) => only(media).sha256), ['1', '2', '3'].map(sha256))
    assert.deepEqual(data.results.map(({ message_ids }) => message_ids?.length), [0, 1, 0, 1, 1, 0])
  })

  test('makes one call after the other, so that nothing overtakes', async () => {
    relay.simulator.fault({ fault: { kind: 'late', ms: 150, delivered: 'then' }, match: carrying('first') })
    await send([text('first'), video(), text('last'), file()])
    assert.deepEqual(outline(relay), ['first', '[video]', 'last', '[file]'])
  })

  test('has precedence over the fields of a single message', async () => {
    const data = batchOf(await relay.send({ group_id: group, type: 'nonsense', msg: 'single', messages: [text('batch')] }))
    assert.equal(data.total, 1)
    assert.deepEqual(outline(relay), ['batch'])
  })
})

describe('an item that is wrong fails alone:', () => {
  const missing = '00000000-0000-4000-8000-000000000000/gone.png'
  const wrong: [unknown, number, RegExp][] = [
    [{ type: 'image', url: 'file:///etc/passwd' }, 400, /url/],
    [{ type: 'image', url: 'nonsense' }, 400, /url/],
    [{ type: 'image', url: `http://127.0.0.1/${'x'.repeat(8192)}` }, 400, /8192 bytes/],
    [{ type: 'image', url: `http://${'x'.repeat(64)}/` }, 400, /63 characters/],
    [{ type: 'image' }, 400, /url/],
    [{ type: 'image', url: missing }, 404, /file/],
    [{ type: 'sound', url: 'http://127.0.0.1/x' }, 400, /type/],
    [{ type: 'text' }, 400, /msg/],
    [{ type: 'text', msg: ' \n' }, 400, /msg/],
    [{ msg: 1 }, 400, /msg/],
    [null, 400, /object/],
    ['a', 400, /object/],
    [1, 400, /object/],
    [[text('a')], 400, /object/],
    [{}, 400, /msg/],
  ]

  test('first, last and between', async () => {
    const data = await send([null, text('a'), null, null, text('b'), file(), null])
    assert.deepEqual(codes(data), [400, 'ok', 400, 400, 'ok', 'ok', 400])
    assert.deepEqual(outline(relay), ['ab', '[file]'])
  })

  test('and all of them together are still a success as a whole, with the codes and texts of single messages', async () => {
    const { success, results } = await send(wrong.map(([item]) => item))
    assert.deepEqual([success, results.map(({ code }) => code)], [0, wrong.map(([, code]) => code)])
    for (const [index, [item, , msg]] of wrong.entries()) {
      assert.match(results[index]?.msg ?? '', msg)
      if (typeof item !== 'object' || item === null || Array.isArray(item)) continue
      const { body } = await relay.send({ group_id: group, ...item })
      assert.deepEqual([results[index]?.code, results[index]?.msg], [body.code, body.msg])
    }
    assert.equal(sends(relay).length, 0)
  })
})

describe('a combined message that the platform refuses', () => {
  test('is sent item by item, so that only the bad one fails', async () => {
    relay.simulator.fault({ fault: { kind: 'refuse', wording: '内容违规' }, match: carrying('bad'), times: Infinity })
    const data = await send([text('a'), image('bad'), text('b'), file('c')])
    assert.deepEqual(codes(data), ['ok', 502, 'ok', 'ok'])
    assert.match(data.results[1]?.msg ?? '', /内容违规/)
    assert.deepEqual(outline(relay), ['a', 'b', '[file]'])
    // The combined one with all its attempts, then each item with one, then the file.
    assert.equal(sends(relay).length, 1 + retries + 3 + 1)
    assert.deepEqual(data.results[0]?.message_ids, [String(relay.simulator.ledger[0]?.messageId)])
    assert.deepEqual(data.results[2]?.message_ids, [String(relay.simulator.ledger[1]?.messageId)])
  })
})
