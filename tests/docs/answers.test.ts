import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { placeOf } from '../support/openapi'
import { startRelay, type TestRelay } from '../support/relay'
import { until } from '../support/until'
import { record } from './support/json'
import { code, marked, pageAt, repository, table, versions, type Page } from './support/pages'
import { Reader } from './support/reader'

/** Each answer of the list has to be one that the relay really gives. */
describe('the list of answers', { timeout: 120_000 }, () => {
  const source = readFileSync(join(repository, 'src/errors.ts'), 'utf8')
  let reader: Reader
  /** The failures that were met, each with its status and text. */
  let met: Set<string>

  before(async () => {
    const failures = meetFailures()
    reader = await Reader.start(marked(pageAt('docs/commands.md'), 'start-with-callback'))
    met = new Set([...await failures, ...await meet(reader)].map(body => {
      const { code: status, msg } = record(JSON.parse(body))
      return JSON.stringify({ status, msg })
    }))
  })
  after(() => reader.stop())

  test('has each id in docs/openapi.yaml', () => {
    const ids = [...source.matchAll(/^  '(\S+)': \[\d{3}[,\]]/gm)].map(([, id]) => id)
    assert.deepEqual(placeOf('components', 'schemas', 'Error', 'properties', 'id')?.value.enum, ids)
  })

  for (const page of versions('http-api')) {
    test(`has each status in ${page.path}`, () => {
      const statuses = [...source.matchAll(/^  \S+: \[(\d{3})[,\]]/gm)].map(([, status]) => Number(status))
      const items = page.prose.match(/^- [45]\d\d.*$/gm) ?? []
      const told = items.flatMap(item => [...item.matchAll(/(?:^- |[.。] ?)([45]\d\d)(?=[ :：])/g)].map(([, status]) => Number(status)))
      assert.deepEqual(new Set(told), new Set(statuses))
    })

    test(`has only examples that are answered in ${page.path}`, () => {
      const shown = examples(page)
      assert(shown.length >= 7)
      for (const each of shown) assert(met.has(JSON.stringify(each)), `nothing answers ${each.status} ${each.msg}`)
    })
  }
})

describe('the table of outcomes', () => {
  for (const page of versions('delivery')) {
    test(`has the four of them in ${page.path}`, () => {
      assert.deepEqual(table(page, /^(Status|状态码)/).map(([, outcome]) => code(outcome)).filter(outcome => outcome !== undefined), ['sent', 'refused', 'unsent', 'unanswered'])
    })
  }
})

/** The examples of the list. */
function examples({ prose }: Page): { status: number, msg: string }[] {
  return [...prose.matchAll(/^- (\d{3}) `([^`]+)`/gm)].map(([, status, msg = '']) => ({ status: Number(status), msg }))
}

/** Asks a bot for what it answers without anything being broken. */
async function meet(reader: Reader): Promise<string[]> {
  const met: string[] = []
  const key = await reader.key()
  const call = async (path: string, status: number, init: RequestInit = {}): Promise<Response> => {
    const response = await fetch(reader.url + path, { ...init, headers: [['x-api-key', key], ...new Headers(init.headers)] })
    const text = await response.text()
    assert.equal(response.status, status, text)
    met.push(text)
    return response
  }
  const post = (body: string | Buffer, headers: Record<string, string> = {}): RequestInit => ({ method: 'POST', body, headers })
  const text = (msg: string): string => JSON.stringify({ group_id: '123456', msg })
  await call('/webhook', 400, post('{'))
  await call('/webhook', 401, post('{}', { 'x-api-key': 'another' }))
  await call('/webhook', 404, post('{"to":"nobody","msg":"x"}'))
  await call('/webhook', 404, post('{"group_id":"123456","type":"file","url":"3f0c2f4e-1111-4222-8333-444455556666/x"}'))
  await call('/webhook', 405)
  await call('/webhook', 413, post(Buffer.alloc(10485761)))
  await call('/upload', 415, post('{}'))
  await call('/deliveries/3f0c2f4e-1111-7222-8333-444455556666', 404)
  const sent = await call('/webhook', 200, post(text('one'), { 'idempotency-key': 'answers' }))
  await call('/webhook', 422, post(text('two'), { 'idempotency-key': 'answers' }))
  await call(`/deliveries/${sent.headers.get('x-request-id') ?? ''}`, 409, { method: 'DELETE' })
  await call('/webhook', 202, post(text('three'), { prefer: 'respond-async' }))
  return met
}

const limited = { name: 'limited', key: 'a-key-for-one-message', targets: ['group:1001'], rate: 1 }

/** Asks a relay while its platform fails in several ways. */
async function meetFailures(): Promise<Set<string>> {
  const met = new Set<string>()
  const relay = await startRelay({
    config: { chatApiTimeout: 3, chatApiMaxRetries: 0, chatQueueLimit: 1, chatPauseAfter: 1, keys: [limited] },
    simulator: { history: false },
  })
  /** @param allowed the statuses that it may have */
  const send: Send = async (group, allowed, headers = {}, more = {}) => {
    const body = JSON.stringify({ group_id: group, msg: 'hello', ...more })
    const response = await relay.request('/webhook', { method: 'POST', body, headers })
    const text = await response.text()
    assert(allowed.includes(response.status), text)
    if (response.status === 409 || response.status === 429) assert.match(response.headers.get('retry-after') ?? '', /^\d+$/)
    met.add(text)
    return response.status
  }
  try {
    await fail(relay, send)
    return met
  } finally {
    await relay.stop()
  }
}

/** Sends to a group, and looks whether the status is one of these. */
type Send = (group: string, allowed: number[], headers?: Record<string, string>, more?: object) => Promise<number>

async function fail({ simulator, app, request }: TestRelay, send: Send): Promise<void> {
  await send('654321', [403], { authorization: `Bearer ${limited.key}` })
  await send('1001', [200], { authorization: `Bearer ${limited.key}` })
  await send('1001', [429], { authorization: `Bearer ${limited.key}` })
  simulator.fault({ fault: { kind: 'late', ms: 2000 } })
  const slow = send('1001', [200], { 'idempotency-key': 'slow' })
  await simulator.until(({ calls }) => calls.some(({ action }) => action === 'send_group_msg'))
  await send('1001', [409], { 'idempotency-key': 'slow' })
  // One is on its way, one waits, and there is no room for another.
  const others = await Promise.all([send('1001', [429, 503], {}, { expires_in: 0.2 }), send('1001', [429, 503], {}, { expires_in: 0.2 })])
  assert.deepEqual(others.sort(), [429, 503])
  await slow

  simulator.fault({ fault: { kind: 'refuse', wording: '群聊不存在' } })
  await send('1002', [502])
  await send('1002', [503])
  simulator.fault({ fault: { kind: 'silent' } })
  await send('1003', [504])
  const undo = app.on('before-send', () => true)
  await send('1004', [502])
  undo()
  await simulator.goOffline()
  await until('the bot is offline', async () => (await request('/readyz')).status === 503)
  await send('1004', [503])
}
