import promises from 'node:fs/promises'
import { test } from 'node:test'
import { languages, type Language } from '../../../src/texts/language'
import { errors } from '../../../src/texts/table/errors'
import { apiKey, relayFor, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { relayWith, releaseHeld } from '../deliveries/support'
import { Wire } from '../http/support'
import { Texts } from './support'

const texts = new Texts(errors, {
  'only the log says it': ['paused', 'no-such-target'],
  'no answer: an attempt goes on': ['unsent'],
  'while the data file is opened again, which takes a moment': ['store-down'],
})

const post = (body: object, headers: Record<string, string> = {}): RequestInit => ({ method: 'POST', body: JSON.stringify(body), headers })
const hello = { group_id: 1, msg: 'hello' }
const id = '01890000-0000-7000-8000-000000000000'

/** The answers to a request in both languages at the same time. */
async function both({ request }: Pick<TestRelay, 'request'>, init: RequestInit): Promise<Map<Language, string>> {
  return new Map(await Promise.all(languages.map(async lang => [lang, await (await request(`/webhook?lang=${lang}`, init)).text()] as const)))
}

test('what a request meets', async t => {
  const relay = await relayFor(t, { config: { chatApiMaxRetries: 0, keys: [{ name: 'slow', key: 'a-key-for-one-message', rate: 1 }] } })
  const stranger = { request: (path: string, init?: RequestInit) => fetch(relay.url + path, init) }
  await texts.ask(stranger, ['unauthorized'], '/keys')
  await texts.ask(relay, ['not-found'], `/deliveries/${id}`)
  await texts.ask(relay, ['file-not-found'], '/webhook', post({ group_id: 1, type: 'file', url: `${id}/x` }))
  const limited = post(hello, { authorization: 'Bearer a-key-for-one-message' })
  await stranger.request('/webhook', limited)
  await texts.ask(stranger, ['rate-limited'], '/webhook', limited)
  await relay.send(hello, { 'idempotency-key': 'used' })
  await texts.ask(relay, ['key-reused'], '/webhook', post({ group_id: 1, msg: 'another' }, { 'idempotency-key': 'used' }))
  t.after(relay.app.on('before-send', () => true))
  await texts.ask(relay, ['suppressed'], '/webhook', post(hello))
})

test('what a platform that fails leads to', async t => {
  const config = { chatApiMaxRetries: 0, chatApiTimeout: 1, chatPauseAfter: 100 }
  const relay = await relayFor(t, { config, simulator: { history: false } })
  relay.simulator.fault({ fault: { kind: 'refuse', wording: '群聊不存在' }, times: 2 })
  await texts.ask(relay, ['refused'], '/webhook', post(hello))
  relay.simulator.fault({ fault: { kind: 'silent' }, times: 2 })
  await texts.ask(relay, ['unanswered'], '/webhook', post({ group_id: 2, msg: 'hello' }))
})

test('what a message meets behind another one', async t => {
  const relay = await relayWith(t, { config: { chatApiMaxRetries: 0, chatQueueLimit: 2 } })
  relay.simulator.fault({ fault: { kind: 'hold' } })
  const first = relay.post(hello, { 'idempotency-key': 'first' })
  await until('it is under way', () => relay.simulator.calls.length > 0)
  await texts.ask(relay, ['in-progress'], '/webhook', post(hello, { 'idempotency-key': 'first' }))
  const expired = both(relay, post({ ...hello, expires_in: 2 }))
  await until('both wait', async () => JSON.stringify((await relay.ask('/queues')).data).includes('"waiting":2'))
  await texts.ask(relay, ['queue-full'], '/webhook', post(hello))
  const answers = await expired
  await texts.meet(['expired'], lang => answers.get(lang) ?? '')
  await releaseHeld(relay)
  await first
})

test('what a disk without room leads to', async t => {
  const relay = await relayFor(t)
  t.mock.method(promises, 'mkdir', () => Promise.reject(Object.assign(new Error('no space'), { code: 'ENOSPC' })))
  await texts.ask(relay, ['storage-full'], '/send/group:1', { method: 'POST', body: 'x', headers: { 'content-type': 'image/png' } })
  t.mock.restoreAll()
  t.mock.method(promises, 'mkdir', () => Promise.reject(new Error('a fault of the relay')))
  await texts.ask(relay, ['internal'], '/send/group:1', { method: 'POST', body: 'x', headers: { 'content-type': 'image/png' } })
})

test('what a relay that stands by refuses, and one that ends', async t => {
  const [first, second] = [await relayWith(t), await relayWith(t)]
  await second.reload({ dataDir: first.dataDir })
  await until('it stands by', async () => (await second.ask('/statusz')).data.standby_for !== undefined)
  await texts.ask(second, ['standby'], '/webhook', post(hello))
  await first.app.parallel('exit', 'SIGTERM')
  await texts.ask(first, ['stopping'], '/webhook', post(hello))
})

test('what a body that does not arrive leads to', async t => {
  const relay = await relayFor(t)
  const { setTimeout: begin } = globalThis
  // A minute for a body passes in a moment.
  t.mock.method(globalThis, 'setTimeout', (work: () => void, time?: number) => begin(work, time === 60_000 ? 100 : time))
  await texts.meet(['too-slow'], async lang => {
    const wire = await Wire.open(relay.url)
    wire.send([`POST /webhook?lang=${lang} HTTP/1.1`, 'Host: relay', `X-API-Key: ${apiKey}`, 'Content-Length: 9'], '{')
    return (await wire.answer()).body
  })
})

texts.complete()
