import { Universal } from 'koishi'
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { isObject } from '../../../src/message/parse'
import { apiKey } from '../../support/relay'
import { until } from '../../support/until'
import { missing, MariaDb } from './mariadb'
import type { SharedRelay } from './relay'
import { look, post, relayFor, send, simulatorFor, texts, untilState } from './support'

/** What a relay answers about its deliveries. */
async function askFor({ url }: SharedRelay, path: string, method = 'GET'): Promise<Record<string, unknown>> {
  const answer: unknown = await (await fetch(url + path, { method, headers: { 'x-api-key': apiKey } })).json()
  assert(isObject(answer) && isObject(answer.data), JSON.stringify(answer))
  return answer.data
}

/** How many there were in all hours. */
function sumOf(hours: readonly unknown[], state: string): number {
  return hours.reduce<number>((sum, hour) => sum + Number(isObject(hour) ? hour[state] : 0), 0)
}

/** As many texts, in order. */
function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `message ${index}`)
}

describe('relays that share a database', { skip: missing }, () => {
  let server: MariaDb

  before(async () => {
    server = await MariaDb.start()
  })
  after(() => server.stop())

  test('deliver each message once and in the order of acceptance, whichever accepted it', async t => {
    const simulator = await simulatorFor(t)
    const options = { access: await server.create(), endpoint: simulator.endpoint }
    const relays = [await relayFor(t, options), await relayFor(t, options)] as const
    const expected = numbered(40)
    const targets = ['123456', '654321']
    const ids: string[] = []
    for (const [index, text] of expected.entries()) {
      for (const target of targets) ids.push(await post(index % 2 === 0 ? relays[0] : relays[1], text, target))
    }
    for (const id of ids) await untilState(relays[0], id, 'sent')
    for (const target of targets) assert.deepEqual(texts(simulator, target), expected)
  })

  test('deliver what one without a connection has accepted', async t => {
    const simulator = await simulatorFor(t)
    const access = await server.create()
    const accepting = await relayFor(t, { access, endpoint: 'ws://127.0.0.1:9', online: false })
    const delivering = await relayFor(t, { access, endpoint: simulator.endpoint })
    const id = await post(accepting, 'from afar')
    await untilState(accepting, id, 'sent')
    assert.deepEqual(texts(simulator), ['from afar'])
    assert.deepEqual(await look(delivering, id), await look(accepting, id))
  })

  test('take over the queues of one that loses its bot', async t => {
    const [simulator, other] = [await simulatorFor(t), await simulatorFor(t)]
    const access = await server.create()
    const loser = await relayFor(t, { access, endpoint: simulator.endpoint, timeout: 0.2 })
    simulator.fault({ fault: { kind: 'silent' }, times: Infinity })
    const ids = [await post(loser, 'one'), await post(loser, 'two')]
    await simulator.until(({ calls }) => calls.some(({ action }) => action === 'send_group_msg'))
    await simulator.goOffline()
    await until('its bot is offline', () => loser.app.bots.every(bot => bot.status !== Universal.Status.ONLINE))
    const heir = await relayFor(t, { access, endpoint: other.endpoint })
    await untilState(heir, ids[1] ?? '', 'sent', 20_000)
    assert.equal(texts(other).at(-1), 'two')
  })

  test('send once for an Idempotency-Key that reaches both at the same time', async t => {
    const simulator = await simulatorFor(t)
    const options = { access: await server.create(), endpoint: simulator.endpoint }
    const relays = [await relayFor(t, options), await relayFor(t, options)]
    const rounds = 20
    for (let round = 0; round < rounds; round++) {
      const headers = { 'idempotency-key': `key-${round}`, ...round % 2 === 1 && { prefer: 'respond-async, wait=5' } }
      const text = `round ${round}`
      const answers = await Promise.all(relays.map(relay => send(relay, text, headers)))
      const kinds = answers.map(({ status, headers }) => status === 409 ? 'in progress' : headers.has('idempotent-replayed') ? 'replay' : status)
      const firsts = kinds.filter(kind => kind === 200 || kind === 202)
      assert.equal(firsts.length, 1, `round ${round}: ${kinds.join()}`)
      await simulator.until(() => texts(simulator).includes(text))
      for (const relay of relays) {
        const { status, headers: answered } = await send(relay, text, headers)
        assert(status === 409 || answered.has('idempotent-replayed'), `${status}`)
      }
    }
    assert.deepEqual(texts(simulator), Array.from({ length: rounds }, (_, round) => `round ${round}`))
  })

  test('do not send again under a key what the call of another may still be bringing', async t => {
    const simulator = await simulatorFor(t)
    const options = { access: await server.create(), endpoint: simulator.endpoint, timeout: 0.5, settle: 3 }
    const relays = [await relayFor(t, options), await relayFor(t, options)] as const
    const started = performance.now()
    await until('the calls of earlier processes have settled', () => performance.now() - started > 3_500)
    simulator.fault({ fault: { kind: 'late', ms: 3_500, delivered: 'then' } })
    const headers = { 'idempotency-key': 'build-42' }
    assert.equal((await send(relays[0], 'deployed', headers)).status, 504)
    const second = await send(relays[1], 'deployed', headers)
    assert.equal(second.status, 504)
    assert(Number(second.headers.get('retry-after')) >= 1)
    await simulator.until(({ ledger }) => ledger.length > 0)
    await until('it is found', async () => (await send(relays[1], 'deployed', headers)).status === 200)
    assert.deepEqual(texts(simulator), ['deployed'])
  })

  test('show what any of them has sent without a key, or failed to, and send it again', async t => {
    const simulator = await simulatorFor(t)
    const options = { access: await server.create(), endpoint: simulator.endpoint }
    const relays = [await relayFor(t, options), await relayFor(t, options)] as const
    assert.equal((await send(relays[0], 'Käse 100%_done')).status, 200)
    simulator.fault({ fault: { kind: 'refuse' }, times: 3 })
    assert.equal((await send(relays[0], 'refused')).status, 502)
    const list = async (query: string): Promise<readonly unknown[]> => {
      const { deliveries } = await askFor(relays[1], `/deliveries?${query}`)
      assert(Array.isArray(deliveries))
      return deliveries.map((each: unknown) => each)
    }
    await until('both are written', async () => (await list('limit=10')).length === 2)
    for (const query of ['text=100%25_d', 'text=k%C3%A4se', 'door=webhook&state=sent', 'target=group:123456&state=sent']) {
      assert.equal((await list(query)).length, 1, query)
    }
    for (const query of ['text=100_', 'door=send', 'target=group:1']) assert.deepEqual(await list(query), [], query)
    const { hours } = await askFor(relays[1], '/deliveries/counts')
    assert(Array.isArray(hours))
    assert.deepEqual([sumOf(hours, 'sent'), sumOf(hours, 'failed')], [1, 1])
    const [failed] = await list('state=failed')
    assert(isObject(failed))
    await askFor(relays[1], `/deliveries/${String(failed.id)}/retry`, 'POST')
    await untilState(relays[0], String(failed.id), 'sent')
    assert.deepEqual(texts(simulator), ['Käse 100%_done', 'refused'])
    assert.equal((await list('limit=10')).length, 2)
  })

  test('send for keys that differ in case', async t => {
    const simulator = await simulatorFor(t)
    const relay = await relayFor(t, { access: await server.create(), endpoint: simulator.endpoint })
    for (const key of ['Build-7', 'build-7']) assert.equal((await send(relay, 'done', { 'idempotency-key': key })).status, 200)
    assert.deepEqual(texts(simulator), ['done', 'done'])
  })

  test('go on after the database server crashed and came back, and lose and double nothing', async t => {
    const simulator = await simulatorFor(t)
    const options = { access: await server.create(), endpoint: simulator.endpoint, timeout: 5 }
    const relays = [await relayFor(t, options), await relayFor(t, options)] as const
    simulator.fault({ fault: { kind: 'late', ms: 30 }, times: Infinity })
    const expected = numbered(20)
    const ids: string[] = []
    for (const [index, text] of expected.entries()) ids.push(await post(index % 2 === 0 ? relays[0] : relays[1], text))
    await simulator.until(({ ledger }) => ledger.length >= 3)
    await server.halt('SIGKILL')
    const { status } = await send(relays[0], 'never accepted', { prefer: 'respond-async' })
    assert.equal(status, 503)
    await server.resume()
    await until('all have arrived', () => texts(simulator).length >= expected.length, 20_000)
    for (const id of ids) await untilState(relays[1], id, 'sent', 20_000)
    assert.deepEqual(texts(simulator), expected)
    const id = await post(relays[1], 'after it')
    await untilState(relays[0], id, 'sent')
    assert.equal(texts(simulator).at(-1), 'after it')
  })
})
