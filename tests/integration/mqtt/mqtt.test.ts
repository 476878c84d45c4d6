import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { group, relayWith, type StoredOptions, type StoredRelay } from '../deliveries/support'
import { until } from '../../support/until'
import type { Config } from '../../../plugins/mqtt/src'
import { Broker, load, mosquitto, type Client } from './support'

const chat = `group:${group}`

interface Setting {
  relay: StoredRelay
  broker: Broker
  client: Client
}

async function start(t: TestContext, subscriptions: Partial<Config['subscriptions'][number]>[], options?: StoredOptions): Promise<Setting> {
  const [relay, broker] = await Promise.all([relayWith(t, options), Broker.start(t)])
  await load(t, relay, broker, { subscriptions: subscriptions as Config['subscriptions'] })
  return { relay, broker, client: await broker.client(t) }
}

describe('messages of a broker', { skip: mosquitto.missing }, () => {
  test('are text or JSON, for the target of the subscription or their own', async t => {
    const { relay, client } = await start(t, [{ topic: 'texts/+', to: chat }, { topic: 'json/#' }])
    await client.publish('texts/door', 'the door is open <b>')
    await client.publish('texts/door', { msg: 'as JSON' })
    await client.publish('texts/door', '{ a text }', { contentType: 'text/plain' })
    await client.publish('json/a/b', { to: chat, messages: [{ msg: 'one' }, { msg: 'two' }] })
    await client.publish('json', { group_id: 123456, msg: 'three', at: [10001] })
    await until('all have arrived', () => relay.texts().length === 5)
    assert.deepEqual(relay.texts(), ['the door is open <b>', 'as JSON', '{ a text }', 'onetwo', 'three'])
  })

  test('that are refused for good do not come again, and do not hold up others', async t => {
    const { relay, client } = await start(t, [{ topic: 'a', to: chat }, { topic: 'b' }])
    const answers = await client.listen('answers')
    const refused: [string, unknown, RegExp][] = [
      ['a', '{ no JSON', /begins like JSON/],
      ['a', Buffer.from([0xff]), /not UTF-8/],
      ['a', { to: chat, msg: 'x' }, /the target is in the path/],
      ['a', { text: 'x' }, /msg/],
      ['b', 'a text', /needs a target/],
      ['b', { to: 'nobody', msg: 'x' }, /nobody/],
    ]
    for (const [topic, payload] of refused) await client.publish(topic, payload, { responseTopic: 'answers', correlationData: Buffer.from(topic) })
    await client.publish('a', 'good')
    await until('the good one has arrived', () => relay.texts().length === 1)
    await until('all are answered', () => answers.length === refused.length)
    for (const [index, [topic, , reason]] of refused.entries()) {
      const answer = answers[index]
      assert.deepEqual([answer?.correlation, answer?.body.state], [topic, 'failed'])
      assert.match(String(answer?.body.msg), reason)
    }
  })
})
