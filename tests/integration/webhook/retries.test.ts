import { Universal } from 'koishi'
import OneBotBot from '@koishijs/plugin-adapter-onebot'
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startRelay, useRelay, type Reply, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { batchOf, failureOf, idsOf, oneBot, only, outline, reconnect, relayFor, sends } from './support'

// How often a call is made, and what becomes of it, is in tests/unit/relay/attempt.test.ts; here is what depends on calls of OneBot.

const retries = 1
const config = { chatApiTimeout: 0.25, chatApiMaxRetries: retries }

let groups = 0

const relay = useRelay({ config })

/** To a group that no other test has written to. */
function send(body: object): Promise<Reply> {
  return relay.send({ group_id: String(500_000 + ++groups), ...body })
}

/** Asserts that the message is in the ledger once and that the answer has its ID. */
function arrivedOnce(reply: Reply, { simulator }: TestRelay): void {
  const { messageId } = only(simulator.ledger)
  assert.deepEqual(idsOf(reply), [String(messageId)])
}

describe('a batch', () => {
  test('repeats the platform message that failed, and not the one that has arrived', async () => {
    const film = 'base64://ZmlsbQ=='
    for (const [fault, type] of [[{ kind: 'refuse' }, 'video'], [{ kind: 'silent' }, 'image']] as const) {
      relay.simulator.clear()
      relay.simulator.fault({ fault, match: ({ params }) => JSON.stringify(params).includes(film), times: retries })
      const data = batchOf(await send({ messages: [{ msg: 'a' }, { type, url: film }, { msg: 'b' }, { type: 'file', url: 'base64://AAAA' }] }))
      assert.equal(data.success, 4)
      assert.deepEqual(outline(relay), type === 'video' ? ['a', '[video]', 'b', '[file]'] : ['ab[image]', '[file]'])
      assert.equal(sends(relay).length, (type === 'video' ? 4 : 2) + retries)
    }
  })

  test('goes on after a platform message that got no answer', async () => {
    relay.simulator.fault({ fault: { kind: 'silent' }, action: 'send_group_msg', times: Infinity })
    const { results } = batchOf(await send({ messages: [{ msg: 'a' }, { msg: 'b' }, { type: 'file', url: 'base64://AAAA' }] }))
    assert.deepEqual(results.map(({ success, code }) => success || code), [504, 504, true])
    assert.deepEqual(outline(relay), ['[file]'])
  })
})

describe('answers', () => {
  test('without data are a success without IDs, and the message is sent once', async () => {
    relay.simulator.fault({ fault: { kind: 'null-data' } })
    assert.deepEqual(idsOf(await send({ msg: 'hello' })), [])
    only(relay.simulator.ledger)
    assert.equal(sends(relay).length, 1)
  })

  test('reach whoever they belong to, of a hundred at once, also where one comes twice', async () => {
    const texts = Array.from({ length: 100 }, (_, index) => `message ${index}`)
    const own = await startRelay({ config: { chatApiTimeout: 5 } })
    try {
      own.simulator.fault({ fault: { kind: 'duplicate-answer' } })
      const replies = await Promise.all(texts.map((msg, index) => own.send({ group_id: 1000 + index, msg })))
      const texted = new Map(own.simulator.ledger.map(({ messageId, text, target }) => [String(messageId), `${target.id} ${text}`]))
      assert.equal(own.simulator.ledger.length, 100)
      assert.deepEqual(replies.map(reply => texted.get(only(idsOf(reply)))), texts.map((msg, index) => `${1000 + index} ${msg}`))
    } finally {
      await own.stop()
    }
  })
})

describe('a bot', { concurrency: 4 }, () => {
  for (const when of ['before', 'delivered', 'answered'] as const) {
    test(`that loses its connection in the middle of a call (${when}) looks the message up when it is back: it arrives once`, async t => {
      const own = await relayFor(t, { config: { chatApiTimeout: 4 } })
      own.simulator.fault({ fault: { kind: 'close', when } })
      arrivedOnce(await own.send({ group_id: '1', msg: 'a' }), own)
    })
  }

  test('that does not come back in time may have sent the message: 504', async t => {
    const own = await relayFor(t, { config })
    own.simulator.fault({ fault: { kind: 'lost-answer' } })
    const reply = own.send({ group_id: '1', msg: 'a' })
    await own.simulator.until(({ ledger }) => ledger.length === 1)
    await own.simulator.goOffline()
    assert.match(failureOf(await reply, 504), /may have arrived/)
    failureOf(await own.send({ group_id: '1', msg: 'b' }), 503)
  })

  test('that is offline is a 503 without a call, and nothing is sent later', async t => {
    const own = await relayFor(t, { config })
    own.simulator.disconnectAll()
    await until('the bot is offline', () => oneBot(own).status === Universal.Status.OFFLINE)
    own.simulator.clear()
    assert.match(failureOf(await own.send({ group_id: '1', msg: 'a' }), 503), /later/)
    await reconnect(own)
    arrivedOnce(await own.send({ group_id: '1', msg: 'b' }), own)
    assert.deepEqual(outline(own), ['b'])
  })

  test('that does not exist is a 503', async t => {
    const own = await relayFor(t, { config })
    own.app.registry.delete(OneBotBot)
    await until('the bot is gone', () => own.app.bots.length === 0)
    assert.match(failureOf(await own.send({ group_id: '1', msg: 'a' }), 503), /bot/)
    failureOf(await own.send({ group_id: 'whatever a platform without a bot has', msg: 'a' }), 503)
  })
})
