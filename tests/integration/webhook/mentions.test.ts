import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { LedgerEntry } from '../../../simulator/types'
import { useRelay } from '../../support/relay'
import { batchOf, failureOf, group, idsOf, only, sends, shape, user } from './support'

const relay = useRelay({ config: { chatApiTimeout: 5, chatApiMaxRetries: 0 } })

const text = (msg: string) => ({ type: 'text', msg })
const at = (id: string) => ({ type: 'at', user_id: id })
const reply = (id: string) => ({ type: 'reply', message_id: id })
const audio = { type: 'audio', url: `base64://${Buffer.from('voice').toString('base64')}` }
const image = { type: 'image', url: `base64://${Buffer.from('picture').toString('base64')}` }
const file = { type: 'file', url: `base64://${Buffer.from('file').toString('base64')}` }

/** What was delivered: the segments of each message, a mention with whom it names and a reply with what it answers. */
function seen(): string[][] {
  const show = ({ type, data }: LedgerEntry['segments'][number]): string => {
    if (type === 'text') return String(data.text)
    return type === 'at' ? `@${String(data.qq)}` : type === 'reply' ? `>${String(data.id)}` : type
  }
  // An uploaded file is in no segment.
  return relay.simulator.ledger.map(({ segments, media }) => segments.length > 0 ? segments.map(show) : media.map(({ type }) => type))
}

/** Sends a message, to be answered. */
async function sayFirst(): Promise<string> {
  const [id = ''] = idsOf(await relay.send({ group_id: group, msg: 'first' }))
  relay.simulator.clear()
  return id
}

describe('a single message', () => {
  test('mentions one user, several, or everybody', async () => {
    for (const mentioned of [user, [user, 10002], 'all']) idsOf(await relay.send({ group_id: group, msg: 'look', at: mentioned }))
    assert.deepEqual(seen(), [[`@${user}`, 'look'], [`@${user}`, '@10002', 'look'], ['@all', 'look']])
  })

  test('answers another one, with text and with a picture', async () => {
    const id = await sayFirst()
    idsOf(await relay.send({ group_id: group, msg: 'second', reply_to: id, at: user }))
    idsOf(await relay.send({ group_id: group, ...image, reply_to: Number(id) }))
    assert.deepEqual(seen(), [[`>${id}`, `@${user}`, 'second'], [`>${id}`, 'image']])
  })

  test('is a voice message by itself', async () => {
    idsOf(await relay.send({ group_id: group, ...audio }))
    assert.deepEqual(shape(only(relay.simulator.ledger)), ['record'])
  })

  test('is sent in one call that is refused as a whole', async () => {
    relay.simulator.fault({ fault: { kind: 'refuse' } })
    failureOf(await relay.send({ group_id: group, msg: 'look', at: [user, '10002'] }), 502)
    assert.equal(sends(relay).length, 1)
  })

  const wrong: [string, object, RegExp][] = [
    ['an object for at', { msg: 'x', at: {} }, /^at must be a string or a whole number/],
    ['a list in a list for at', { msg: 'x', at: [[user]] }, /^at must be a string/],
    ['too many mentions', { msg: 'x', at: Array.from({ length: 1001 }, (_, index) => index + 1) }, /^at must hold at most 1000/],
    ['nobody', { msg: 'x', at: [user, 0] }, /^0 is the ID of nobody: "all" mentions everybody/],
    ['nobody, with more digits', { msg: 'x', at: '-00' }, /^0 is the ID of nobody/],
    ['zero behind a blank', { msg: 'x', at: ' 0' }, /^the ID of a mention must not hold/],
    ['zero in another notation', { msg: 'x', at: '0x0' }, /^the ID of a mention must be a number/],
    ['markup', { msg: 'x', at: '1> @everyone <@1' }, /^the ID of a mention must not hold/],
    ['true for reply_to', { msg: 'x', reply_to: true }, /^reply_to must be/],
    ['a mention with a file', { ...file, at: user }, /^at and reply_to go with a text or an image only/],
    ['a reply with a voice message', { ...audio, reply_to: 5 }, /^at and reply_to go with/],
    ['a mention alone', { type: 'at' }, /^type must be text, image, file, video or audio/],
  ]
  for (const [what, fields, pattern] of wrong) {
    test(`is refused with ${what}`, async () => {
      assert.match(failureOf(await relay.send({ group_id: group, ...fields }), 400), pattern)
    })
  }
})

describe('a batch', () => {
  test('has mentions before the text that follows, and a reply first in its message', async () => {
    const id = await sayFirst()
    batchOf(await relay.send({ group_id: group, messages: [text('a'), at(user), audio, file, reply(id), image, at('10002'), text('b'), at('all')] }))
    assert.deepEqual(seen(), [['a'], ['record'], [`>${id}`, `@${user}`, 'image', '@10002', 'b', '@all'], ['file']])
  })

  test('answers two messages in two', async () => {
    const id = await sayFirst()
    batchOf(await relay.send({ group_id: group, messages: [reply(id), text('a'), text('b'), reply(id), text('c')] }))
    assert.deepEqual(seen(), [[`>${id}`, 'a', 'b'], [`>${id}`, 'c']])
  })

  test('keeps a mention with its text where items are sent one by one', async () => {
    relay.simulator.fault({ fault: { kind: 'refuse' } })
    const { results } = batchOf(await relay.send({ group_id: group, messages: [at(user), text('a'), image, at('10002'), text('b')] }))
    assert.deepEqual(seen(), [[`@${user}`, 'a'], ['image'], ['@10002', 'b']])
    const places = relay.simulator.ledger.map(({ messageId }) => String(messageId))
    assert.deepEqual(results.map(({ message_ids: ids }) => places.indexOf(ids?.[0] ?? '')), [0, 0, 1, 2, 2])
  })

  test('has no reply by itself', async () => {
    const { results } = batchOf(await relay.send({ group_id: group, messages: [reply('5'), file] }))
    assert.deepEqual(results.map(({ success, msg }) => success || msg), ['a reply cannot be sent alone: add a text, picture or mention', true])
    assert.deepEqual(seen(), [['file']])
  })

  test('is not taken for done where an item lacks its ID, or has that of nobody', async () => {
    const { results } = batchOf(await relay.send({ group_id: group, messages: [{ type: 'at' }, at('0'), { type: 'reply' }, text('a')] }))
    assert.deepEqual(results.map(({ code }) => code), [400, 400, 400, undefined])
  })
})
