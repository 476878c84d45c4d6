import OneBotBot from '@koishijs/plugin-adapter-onebot'
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { relayFor, useRelay, type Reply, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { failureOf, idsOf, only, sends } from './support'

// How often a call is made, and what becomes of it, is in tests/unit/relay/attempt.test.ts; here is what depends on calls of OneBot.

const config = { chatApiTimeout: 0.25, chatApiMaxRetries: 1 }

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

describe('answers', () => {
  test('without data are a success without IDs, and the message is sent once', async () => {
    relay.simulator.fault({ fault: { kind: 'null-data' } })
    assert.deepEqual(idsOf(await send({ msg: 'hello' })), [])
    only(relay.simulator.ledger)
    assert.equal(sends(relay).length, 1)
  })

  test('reach whoever they belong to, of a hundred at once, also where one comes twice', async t => {
    const texts = Array.from({ length: 100 }, (_, index) => `message ${index}`)
    const own = await relayFor(t, { config: { chatApiTimeout: 5 } })
    own.simulator.fault({ fault: { kind: 'duplicate-answer' } })
    const replies = await Promise.all(texts.map((msg, index) => own.send({ group_id: 1000 + index, msg })))
    const texted = new Map(own.simulator.ledger.map(({ messageId, text, target }) => [String(messageId), `${target.id} ${text}`]))
    assert.equal(own.simulator.ledger.length, 100)
    assert.deepEqual(replies.map(reply => texted.get(only(idsOf(reply)))), texts.map((msg, index) => `${1000 + index} ${msg}`))
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

  test('that does not exist is a 503', async t => {
    const own = await relayFor(t, { config })
    own.app.registry.delete(OneBotBot)
    await until('the bot is gone', () => own.app.bots.length === 0)
    assert.match(failureOf(await own.send({ group_id: '1', msg: 'a' }), 503), /bot/)
    failureOf(await own.send({ group_id: 'whatever a platform without a bot has', msg: 'a' }), 503)
  })
})
