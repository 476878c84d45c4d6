import { Universal } from 'koishi'
import OneBotBot from '@koishijs/plugin-adapter-onebot'
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Fault, ProfileName } from '../../../simulator/types'
import { startRelay, useRelay, type Reply, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { batchOf, failureOf, idsOf, oneBot, only, outline, reconnect, relayFor, sends } from './support'

const timeout = 250
const retries = 1
const config = { chatApiTimeout: timeout / 1000, chatApiMaxRetries: retries }
/** The longest that a send may take, and what a busy machine adds. */
const longest = (1 + retries) * timeout + 1.5 * 200 * (2 ** retries - 1) + 500

let groups = 0

const relay = useRelay({ config })

/** A group that no other test has written to. */
function freshGroup(): string {
  return String(500_000 + ++groups)
}

function send(body: object = {}): Promise<Reply> {
  return relay.send({ group_id: freshGroup(), msg: 'hello', ...body })
}

async function timed<T>(task: Promise<T>): Promise<[T, number]> {
  const start = performance.now()
  return [await task, performance.now() - start]
}

/** Asserts that the message is in the ledger once and that the answer has its ID. */
function arrivedOnce(reply: Reply, { simulator }: TestRelay = relay): void {
  const { messageId } = only(simulator.ledger)
  assert.deepEqual(idsOf(reply), [String(messageId)])
}

describe('a call that the platform refuses', () => {
  test('is made again, and the message is sent once', async () => {
    relay.simulator.fault({ fault: { kind: 'refuse' } })
    arrivedOnce(await send())
    assert.equal(sends(relay).length, 2)
  })

  test('always is a 502 with the platform\'s own words after all attempts', async () => {
    relay.simulator.fault({ fault: { kind: 'refuse', wording: '消息内容违规' }, times: Infinity })
    assert.match(failureOf(await send(), 502), /消息内容违规/)
    assert.equal(sends(relay).length, 1 + retries)
    assert.equal(relay.simulator.ledger.length, 0)
  })

  test('is told in one line, without what was sent', async () => {
    const wording = 'cannot open \n\'/srv/secret/x.png\' base64://AAAA file:///srv/secret/y.png'
    relay.simulator.fault({ fault: { kind: 'refuse', wording }, times: Infinity })
    const msg = failureOf(await send(), 502)
    assert(!/secret|AAAA|\n/.test(msg), msg)
    assert.match(msg, /cannot open/)
  })

  for (const kind of ['muted', 'not-member'] as const) {
    test(`because of the target (${kind}) is not made again`, async () => {
      relay.simulator.fault({ fault: { kind }, times: Infinity })
      assert.match(failureOf(await send(), 502), /禁言|移出/)
      assert.equal(sends(relay).length, 1)
    })
  }

  test('applies to files as well', async () => {
    relay.simulator.fault({ fault: { kind: 'refuse' }, action: /^upload_/ })
    assert.deepEqual(idsOf(await send({ type: 'file', url: 'base64://AAAA' })), [])
    assert.equal(only(relay.simulator.ledger).kind, 'file')
    assert.equal(sends(relay).length, 2)
  })
})

describe('a platform that does not answer', () => {
  test('is a 504 after all attempts, in time', async () => {
    relay.simulator.fault({ fault: { kind: 'silent' }, times: Infinity })
    const [reply, elapsed] = await timed(send())
    assert.match(failureOf(reply, 504), /may have arrived/)
    assert.equal(sends(relay).length, 1 + retries)
    assert(elapsed >= (1 + retries) * timeout, `${elapsed} ms`)
    assert(elapsed < longest, `${elapsed} ms`)
    assert.equal(relay.simulator.ledger.length, 0)
  })

  test('but delivers is asked for its history, and the message is sent once', async () => {
    relay.simulator.fault({ fault: { kind: 'lost-answer' } })
    arrivedOnce(await send())
    assert.equal(sends(relay).length, 1)
  })

  test('and then refuses may have delivered all the same: 504, and a combined message is not sent item by item', async t => {
    const own = await relayFor(t, { config, simulator: { history: false } })
    own.simulator.fault({ fault: { kind: 'silent' } })
    own.simulator.fault({ fault: { kind: 'refuse' }, times: Infinity })
    const { results } = batchOf(await own.send({ group_id: freshGroup(), messages: [{ msg: 'a' }, { msg: 'b' }] }))
    assert.deepEqual(results.map(({ code }) => code), [504, 504])
    assert(sends(own).length <= 1 + retries)
  })

  test('and reports a time-out of its own may have delivered, whatever comes after it', async t => {
    const own = await relayFor(t, { config: { ...config, chatApiMaxRetries: 2 }, simulator: { history: false } })
    // The first call is refused, but so late that the second has already been made, of which nothing is known.
    own.simulator.fault({ fault: { kind: 'late', ms: 2 * timeout + 350, delivered: 'never' } })
    own.simulator.fault({ fault: { kind: 'timeout', delivered: true } })
    own.simulator.fault({ fault: { kind: 'refuse', wording: 'no' }, times: Infinity })
    failureOf(await own.send({ group_id: freshGroup(), msg: 'hello' }), 504)
  })
})

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
    assert.deepEqual(idsOf(await send()), [])
    only(relay.simulator.ledger)
    assert.equal(sends(relay).length, 1)
  })

  test('that come twice count once', async () => {
    relay.simulator.fault({ fault: { kind: 'duplicate-answer' } })
    arrivedOnce(await send())
    relay.simulator.clear()
    arrivedOnce(await send())
  })

  test('that come out of order reach whoever they belong to', async () => {
    relay.simulator.fault({ fault: { kind: 'hold' }, match: ({ params }) => JSON.stringify(params).includes('first') })
    const first = send({ msg: 'first' })
    await relay.simulator.until(({ ledger }) => ledger.length === 1)
    const second = send({ msg: 'second' })
    const ids = [only(idsOf(await first)), only(idsOf(await second))]
    assert.deepEqual(outline(relay), ['first', 'second'])
    assert.deepEqual(ids, relay.simulator.ledger.map(({ messageId }) => String(messageId)))
  })

  test('reach whoever they belong to, of a hundred at once', async () => {
    const texts = Array.from({ length: 100 }, (_, index) => `message ${index}`)
    const own = await startRelay({ config: { chatApiTimeout: 5 } })
    try {
      const replies = await Promise.all(texts.map((msg, index) => own.send({ group_id: 1000 + index, msg })))
      const texted = new Map(own.simulator.ledger.map(({ messageId, text, target }) => [String(messageId), `${target.id} ${text}`]))
      assert.equal(own.simulator.ledger.length, 100)
      assert.deepEqual(replies.map(reply => texted.get(only(idsOf(reply)))), texts.map((msg, index) => `${1000 + index} ${msg}`))
    } finally {
      await own.stop()
    }
  })
})

// Each of these has a relay of its own and mostly waits.
describe('the answers of', { concurrency: 4 }, () => {
  const uncertain: [ProfileName, Fault][] = [
    ['napcat', { kind: 'timeout' }],
    ['lagrange', { kind: 'timeout' }],
    ['gocqhttp', { kind: 'refuse' }],
  ]
  for (const [profile, fault] of uncertain) {
    test(`${profile} that leave open whether the message arrived are a 504`, async t => {
      const own = await relayFor(t, { config, simulator: { profile } })
      own.simulator.fault({ fault, times: Infinity })
      const [reply, elapsed] = await timed(own.send({ group_id: '1', msg: 'a' }))
      assert.match(failureOf(reply, 504), /may have arrived/)
      assert(elapsed < longest, `${elapsed} ms`)
    })
  }

  test('llbot that it has not seen the message itself are a success without an ID', async t => {
    const own = await relayFor(t, { config, simulator: { profile: 'llbot' } })
    own.simulator.fault({ fault: { kind: 'timeout', delivered: true } })
    assert.deepEqual(idsOf(await own.send({ group_id: '1', msg: 'a' })), [])
    only(own.simulator.ledger)
    assert.equal(sends(own).length, 1)
  })

  test('lagrange without a reason are a 502 with the code', async t => {
    const own = await relayFor(t, { config, simulator: { profile: 'lagrange' } })
    own.simulator.fault({ fault: { kind: 'refuse', retcode: 1234, wording: '' }, times: Infinity })
    assert.match(failureOf(await own.send({ group_id: '1', msg: 'a' }), 502), /1234/)
  })

  for (const profile of ['napcat', 'llbot', 'lagrange'] as const) {
    test(`${profile} in a group where the bot is muted, or is not, are a 502 after one call`, async t => {
      const own = await relayFor(t, { config, simulator: { profile } })
      own.simulator.fault({ fault: { kind: 'muted' } })
      failureOf(await own.send({ group_id: '1', msg: 'a' }), 502)
      assert.equal(sends(own).length, 1)
    })
  }
})

describe('a bot', { concurrency: 4 }, () => {
  for (const when of ['before', 'delivered'] as const) {
    test(`that loses its connection in the middle of a call (${when}) looks the message up when it is back: it arrives once`, async t => {
      const own = await relayFor(t, { config: { chatApiTimeout: 4 } })
      own.simulator.fault({ fault: { kind: 'close', when } })
      arrivedOnce(await own.send({ group_id: '1', msg: 'a' }), own)
    })
  }

  test('that does not come back in time may have sent the message: 504', async t => {
    const own = await relayFor(t, { config })
    own.simulator.fault({ fault: { kind: 'lost-answer' } })
    const [reply] = await Promise.all([
      timed(own.send({ group_id: '1', msg: 'a' })),
      own.simulator.until(({ ledger }) => ledger.length === 1).then(() => own.simulator.goOffline()),
    ])
    assert.match(failureOf(reply[0], 504), /may have arrived/)
    assert(reply[1] < longest, `${reply[1]} ms`)
    failureOf(await own.send({ group_id: '1', msg: 'b' }), 503)
  })

  test('that loses its connection right after the answer has sent the message', async t => {
    const own = await relayFor(t, { config })
    own.simulator.fault({ fault: { kind: 'close', when: 'answered' } })
    arrivedOnce(await own.send({ group_id: '1', msg: 'a' }), own)
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

test('a group that does not answer holds up no other', async () => {
  const slow = freshGroup()
  relay.simulator.fault({ fault: { kind: 'silent' }, target: slow, times: Infinity })
  let isAnswered = false
  const reply = send({ group_id: slow }).finally(() => {
    isAnswered = true
  })
  await relay.simulator.until(({ calls }) => calls.length > 0)
  for (let count = 0; count < 5; count++) {
    const [, elapsed] = await timed(send().then(idsOf))
    assert(elapsed < timeout, `${elapsed} ms`)
  }
  assert.equal(isAnswered, false)
  failureOf(await reply, 504)
})
