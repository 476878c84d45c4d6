import { connectAsync } from 'mqtt'
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import * as plugin from '../../../plugins/mqtt/src'
import type { Subscription } from '../../../plugins/mqtt/src/config'
import { failFiles } from '../../support/data-file'
import { temporaryFolder } from '../../support/folder'
import { until } from '../../support/until'
import { group, other, relayWith, takeOffline, useStored, type StoredRelay } from '../deliveries/support'
import { Broker, load, mosquitto, openssl, settings, type Client } from './support'

const chat = `group:${group}`
const patience = 20_000

describe('messages of a broker', { skip: mosquitto.missing }, () => {
  const relay = useStored({ config: { chatApiMaxRetries: 0 } })

  /** A broker, the plugin with these subscriptions, and a client that publishes. */
  async function start(
    t: TestContext, ...subscriptions: (Partial<Subscription> & { topic: string })[]
  ): Promise<{ broker: Broker, client: Client }> {
    const broker = await Broker.start(t)
    await load(t, relay, broker, { subscriptions })
    return { broker, client: await broker.client(t) }
  }

  const arrive = (...texts: string[]): Promise<void> => (
    until(() => `${JSON.stringify(texts)} arrived, not ${JSON.stringify(relay.texts())}`, () => relay.texts().join() === texts.join(), patience)
  )
  const logged = (pattern: RegExp, relayOf: StoredRelay = relay): Promise<void> => (
    until(() => `the log has ${String(pattern)}: ${relayOf.logs.slice(-9).join('; ')}`, () => relayOf.logs.some(line => pattern.test(line)), patience)
  )

  test('are text or JSON, for the target of the subscription or their own', async t => {
    const { client } = await start(t, { topic: 'texts/+', to: chat }, { topic: 'json/#' }, { topic: '$share/relays/shared/#', to: chat })
    await client.publish('texts/door', 'the door is open <b>')
    await client.publish('texts/door', { msg: 'as JSON' })
    await client.publish('texts/door', '{ a text }', { contentType: 'text/plain' })
    await client.publish('texts', 'to another topic')
    await client.publish('json/a/b', { to: chat, messages: [{ msg: 'one' }, { msg: 'two' }] })
    await client.publish('json', { group_id: 123456, msg: 'three', at: [10001] })
    await client.publish('shared/a', 'four', {}, { qos: 2 })
    await client.publish('shared/a', 'five', {}, { qos: 0 })
    await arrive('the door is open <b>', 'as JSON', '{ a text }', 'onetwo', 'three', 'four', 'five')
  })

  test('that are refused for good do not come again, and do not hold up others', async t => {
    const { broker, client } = await start(t, { topic: 'a', to: chat }, { topic: 'b' })
    const answers = await client.listen('answers')
    const refused: [string, unknown, RegExp][] = [
      ['a', '{ no JSON', /begins like JSON/],
      ['a', Buffer.from([0xff]), /not UTF-8/],
      ['a', { to: chat, msg: 'x' }, /the subscription has a target/],
      ['a', { text: 'x' }, /msg/],
      ['b', 'a text', /needs a target/],
      ['b', { to: 'nobody', msg: 'x' }, /nobody/],
    ]
    for (const [topic, payload] of refused) await client.publish(topic, payload, { responseTopic: 'answers', correlationData: Buffer.from(topic) })
    await client.publish('a', 'good')
    await arrive('good')
    await until('all are answered', () => answers.length === refused.length, patience)
    for (const [index, [topic, , reason]] of refused.entries()) {
      const answer = answers[index]
      assert.deepEqual([answer?.correlation, answer?.body.state], [topic, 'failed'])
      assert.match(String(answer?.body.msg), reason)
    }
    await broker.stop()
    await broker.start()
    const again = await broker.client(t)
    await again.publish('a', 'back')
    await arrive('good', 'back')
    assert.equal(relay.logs.filter(line => line.includes('begins like JSON')).length, 1)
  })

  test('with the same key are sent once, and both learn of the one delivery', async t => {
    const { client } = await start(t, { topic: 'a', to: chat }, { topic: 'b', to: chat, key: 'event' })
    const answers = await client.listen('answers')
    const asking = { responseTopic: 'answers' }
    for (let count = 0; count < 2; count++) await client.publish('a', 'x', { ...asking, userProperties: { 'idempotency-key': '7' } })
    for (let count = 0; count < 2; count++) await client.publish('b', { event: 7, msg: 'y' }, asking)
    await until('all are answered', () => answers.length === 4, patience)
    assert.deepEqual(relay.texts(), ['x', 'y'])
    const ids = new Set(answers.map(({ body }) => body.delivery_id))
    assert.equal(ids.size, 2)
    await client.publish('b', { event: 7, msg: 'another' }, asking)
    await until('it is refused', () => answers.length === 5, patience)
    assert.equal(answers[4]?.body.error, 'key-reused')
  })

  test('are answered at their response topic, with their correlation data, once they have ended', async t => {
    const { client } = await start(t, { topic: 'a' })
    const answers = await client.listen('answers')
    relay.simulator.fault({ fault: { kind: 'refuse' }, target: other, times: Infinity })
    const properties = { responseTopic: 'answers', correlationData: Buffer.from('c 1') }
    await client.publish('a', { to: [chat, `group:${other}`], msg: 'x' }, properties)
    await until('both are answered', () => answers.length === 2, patience)
    assert.deepEqual(answers.map(({ correlation }) => correlation), ['c 1', 'c 1'])
    const [sent, failed] = [chat, `group:${other}`].map(target => answers.find(({ body }) => body.target === target)?.body)
    const { messageIds } = await relay.app.messageRelay.get(String(sent?.delivery_id))
    assert.deepEqual([sent?.state, sent?.outcome, sent?.message_ids], ['sent', 'sent', messageIds])
    assert.deepEqual([failed?.state, failed?.outcome], ['failed', 'refused'])
    assert(failed?.msg)
  })

  test('wait at the broker while the plugin is away, and arrive in their order', async t => {
    const broker = await Broker.start(t)
    const config = { subscriptions: [{ topic: 'a', to: chat }] }
    const client = await broker.client(t)
    await client.publish('a', 'retained before', {}, { retain: true })
    const fork = await load(t, relay, broker, config)
    await client.publish('a', '1', {}, { retain: true })
    await arrive('1')
    fork.dispose()
    await client.publish('a', '2')
    await client.publish('a', '')
    await load(t, relay, broker, config)
    await client.publish('a', '3')
    await arrive('1', '2', '3')
  })

  test('come again after the relay could not write to its disk, in their order', async t => {
    const { client } = await start(t, { topic: 'a', to: chat })
    const restore = failFiles('run')
    t.after(restore)
    await client.publish('a', '1')
    await logged(/stays at the broker/)
    await client.publish('a', '2')
    restore()
    await client.publish('a', '3')
    await arrive('1', '2', '3')
  })

  test('for a chat whose queue is full come again, and others pass them', async t => {
    const full = await relayWith(t, { config: { chatQueueLimit: 1 } })
    const broker = await Broker.start(t)
    await load(t, full, broker, { subscriptions: [{ topic: 'a', to: chat }, { topic: 'b', to: `group:${other}` }] })
    const client = await broker.client(t)
    const goOnline = await takeOffline(full)
    for (const text of ['1', '2']) await client.publish('a', text)
    await client.publish('b', '3')
    await logged(/stays at the broker.*too many messages/, full)
    await goOnline()
    await until('all have arrived', () => full.texts().sort().join() === '1,2,3', patience)
  })

  test('of a subscription that is gone are refused, because the session still has it', async t => {
    const broker = await Broker.start(t)
    const fork = await load(t, relay, broker, { subscriptions: [{ topic: 'a', to: chat }, { topic: 'b', to: chat }] })
    fork.dispose()
    await load(t, relay, broker, { subscriptions: [{ topic: 'b', to: chat }, { topic: 'b' }] })
    const client = await broker.client(t)
    await client.publish('a', 'x')
    await client.publish('b', 'y')
    await arrive('y')
    assert(relay.logs.some(line => line.includes('b is in the list of subscriptions twice')))
    assert(relay.logs.some(line => line.includes('a message of a was refused: this subscription is not in the settings')))
  })

  test('tell the log, in the language of the relay, why there are none', async t => {
    const chinese = await relayWith(t, { config: { language: 'zh-CN' } })
    const broker = await Broker.start(t, ['allow_anonymous false'])
    const config = { subscriptions: [{ topic: 'a', to: chat }], url: `${broker.url}/` }
    void load(t, chinese, broker, config).catch(() => undefined)
    await logged(/127.0.0.1:\d+：.*[Nn]ot authorized：请检查 `username`/, chinese)
  })

  test('need a broker with MQTT 5, and settings that can be read', async t => {
    const older = createServer(socket => socket.once('data', () => socket.end())).listen(0, '127.0.0.1')
    t.after(() => older.close())
    await once(older, 'listening')
    const { port } = older.address() as AddressInfo
    const start = (url: string, ca?: string): ReturnType<typeof relay.app.plugin> => (
      relay.app.plugin(plugin, settings({ url, ...ca !== undefined && { ca }, subscriptions: [] }))
    )
    const forks = [start(`mqtt://127.0.0.1:${port}`), start(`mqtts://localhost:${port}`, '/nowhere.pem')]
    t.after(() => forks.forEach(fork => fork.dispose()))
    await logged(/without an answer: the broker must speak MQTT 5/)
    await logged(/cannot start with these settings: .*nowhere\.pem/)
    assert.throws(() => plugin.Config({ url: '127.0.0.1:1883', clientId: 'relay-1' } as plugin.Config), /url/)
  })

  test('come over TLS, from a broker whose authority is known', { skip: openssl.missing }, async t => {
    const folder = temporaryFolder()
    const [key, ca] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    execFileSync(openssl.path('openssl'), [
      ...'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost -addext subjectAltName=DNS:localhost'.split(' '),
      '-keyout', key, '-out', ca,
    ], { stdio: 'ignore' })
    const broker = await Broker.start(t, ['allow_anonymous true', `certfile ${ca}`, `keyfile ${key}`])
    const url = `mqtts://localhost:${broker.port}`
    const unknown = relay.app.plugin(plugin, settings({ url, clientId: 'unknown', subscriptions: [] }))
    t.after(() => unknown.dispose())
    await logged(/localhost:\d+: self-signed certificate: set `ca`/)
    await load(t, relay, broker, { url, ca, subscriptions: [{ topic: 'a', to: chat }] })
    const client = await connectAsync(url, { protocolVersion: 5, ca: readFileSync(ca) })
    t.after(() => client.endAsync(true))
    await client.publishAsync('a', 'over TLS', { qos: 1 })
    await arrive('over TLS')
  })
})
