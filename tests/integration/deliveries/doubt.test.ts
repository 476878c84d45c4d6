import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { sends } from '../reload/support'
import { until } from '../../support/until'
import { driverOf, group, later, other, relayWith, takeOffline, type StoredRelay, type Shown } from './support'
import { victim } from './victim'

const key = { 'idempotency-key': 'k' }
const table = 'message_relay_journal'
/** One call, which settles at once when it is over. */
const once = { chatApiTimeout: 1, chatSettleTime: 1, chatApiMaxRetries: 0, chatRetryUnanswered: false }

/** A relay that has sent something, and that is so old that what an earlier process had called would have settled. */
async function settledRelay(t: TestContext): Promise<StoredRelay> {
  const relay = await relayWith(t, { config: once })
  await relay.post({ group_id: group, msg: 'before' })
  await delay(1_100)
  return relay
}

/** Makes the platform carry out the next send, and answer it so much later, in milliseconds. */
function answerLate({ simulator }: StoredRelay, ms: number): void {
  simulator.fault({ fault: { kind: 'late', ms, delivered: 'then' }, action: /^send_/ })
}

/** Makes the platform say nothing of its history. */
function hideHistory({ simulator }: StoredRelay): void {
  simulator.fault({ fault: { kind: 'silent' }, action: /history/, times: Infinity })
}

/** The ID of a request whose answer holds none. */
async function send(relay: StoredRelay, body: object, headers: Record<string, string>): Promise<string> {
  const response = await relay.request('/webhook', { method: 'POST', headers, body: JSON.stringify({ group_id: group, ...body }) })
  return response.headers.get('x-request-id') ?? ''
}

function outcomes({ results }: Shown): unknown[] {
  return results.map(({ success, outcome }) => success === true ? 'sent' : outcome)
}

describe('what is in doubt', () => {
  test('is sent again for its key in its own queue, in the place behind what waits there', async t => {
    const relay = await relayWith(t, { config: { ...once, chatApiTimeout: 2, chatSettleTime: 2, chatRetryUnanswered: true } })
    await relay.post({ group_id: group, msg: 'before' })
    await delay(2_200)
    relay.simulator.fault({ fault: { kind: 'silent' } })
    const id = await send(relay, { msg: 'hello' }, { ...key, ...later })
    await relay.reaches(id, 'unanswered')
    await delay(2_100)
    answerLate(relay, 1_200)
    const before = sends(relay).length
    const slow = relay.post({ group_id: group, msg: 'slow' })
    await until('it is under way', () => sends(relay).length > before)
    const repeat = relay.post({ group_id: group, msg: 'hello' }, key)
    const last = await relay.queue('last')
    assert.equal((await slow).status, 200)
    assert.equal((await repeat).status, 200)
    await relay.reaches(last, 'sent')
    assert.deepEqual(relay.texts().sort(), ['before', 'hello', 'last', 'slow'])
    assert.equal((await relay.show(id)).state, 'sent')
  })

  test('is put right by a late answer, and what was sent meanwhile stays sent', async t => {
    const relay = await relayWith(t, { config: once })
    const [first] = (await relay.post({ group_id: group, msg: 'before' })).data.message_ids as string[]
    await delay(1_200)
    hideHistory(relay)
    answerLate(relay, 6_000)
    relay.simulator.fault({ fault: { kind: 'refuse' }, action: /^send_/ })
    const reply = { type: 'reply', message_id: first }
    const id = await send(relay, { messages: [reply, { type: 'text', msg: 'one' }, reply, { type: 'text', msg: 'two' }] }, later)
    assert.deepEqual(outcomes(await relay.reaches(id, 'unanswered')), ['unanswered', 'unanswered', 'refused', 'refused'])
    await delay(1_200)
    assert.equal((await relay.ask(`/deliveries/${id}/retry`, 'POST')).status, 202)
    await until('the second one is sent', async () => outcomes(await relay.show(id))[3] === 'sent')
    assert.deepEqual(outcomes(await relay.reaches(id, 'sent')), ['sent', 'sent', 'sent', 'sent'])
    assert.deepEqual(relay.texts(), ['before', 'two', 'one'])
  })
})

describe('a text that is delivered later', () => {
  test('holds its queue while it is open, however often it could not leave before', async t => {
    const config = { ...once, chatApiTimeout: 0.5, chatApiMaxRetries: 1 }
    const relay = await relayWith(t, { config })
    await relay.post({ group_id: group, msg: 'before' })
    await delay(1_100)
    let held = 0
    t.after(relay.app.on('before-send', () => held++ === 0 ? new Promise<never>(() => undefined) : undefined))
    relay.simulator.fault({ fault: { kind: 'silent' }, action: /^send_/ })
    const ids = [await relay.queue('first'), await relay.queue('second')]
    for (const id of ids) await relay.reaches(id, 'sent')
    assert.deepEqual(relay.texts(), ['before', 'first', 'second'])
    assert.equal(sends(relay).length, 4)
  })

  test('that could not leave is tried again, however long the pause between two messages', async t => {
    const relay = await relayWith(t, { config: { ...once, chatApiTimeout: 0.5, chatApiMaxRetries: 1, chatSendInterval: 1 } })
    let held = 0
    t.after(relay.app.on('before-send', () => held++ === 0 ? new Promise<never>(() => undefined) : undefined))
    const picture = { type: 'image', url: `base64://${Buffer.from('GIF89a').toString('base64')}` }
    const id = await send(relay, picture, later)
    const has = async (states: string[]): Promise<boolean> => states.includes((await relay.show(id)).state)
    await until('it has ended', () => has(['sent', 'unanswered']))
    assert.deepEqual(outcomes(await relay.show(id)), ['sent'])
  })
})

describe('an event that is told again in other words', () => {
  test('is found as it was told first', async t => {
    const relay = await settledRelay(t)
    relay.simulator.fault({ fault: { kind: 'lost-answer' }, action: /^send_/ })
    relay.simulator.fault({ fault: { kind: 'silent' }, action: /history/, times: 2 })
    const tell = async (title: string): Promise<number> => (await relay.request(`/hooks/github/group:${group}`, {
      method: 'POST',
      headers: { 'x-github-event': 'issues', 'x-github-delivery': 'd-1', 'content-type': 'application/json' },
      body: JSON.stringify({ action: 'opened', issue: { number: 1, title }, repository: { full_name: 'a/b' }, sender: { login: 'eva' } }),
    })).status
    assert.equal(await tell('first title'), 200)
    const told = (): string[] => relay.texts().filter(text => text !== 'before')
    await until('it is in the chat', () => told().length === 1)
    await until('it is known to be there', async () => await tell('edited title') === 200 && (await relay.list()).every(({ state }) => state === 'sent'))
    assert.match(told().join(), /^[^,]*first title[^,]*$/)
  })
})

describe('a database that does not answer', () => {
  test('while an answer comes late: it is written down when the database is back', async t => {
    const relay = await relayWith(t, { config: once })
    const driver = driverOf(relay)
    const set = driver.set.bind(driver)
    let isDown = false
    driver.set = (selection, data) => isDown ? Promise.reject(new Error('disk full')) : set(selection, data)
    hideHistory(relay)
    answerLate(relay, 2_000)
    const answer = send(relay, { msg: 'hello' }, key)
    await until('it is under way', () => sends(relay).length === 1)
    isDown = true
    const id = await answer
    await until('its answer has come', () => relay.texts().length === 1)
    await until('it is known meanwhile', async () => (await relay.show(id)).state === 'sent')
    isDown = false
    await until('it is written', async () => (await relay.app.database.get(table, { id }, ['state']))[0]?.state === 'sent')
    assert.equal((await relay.post({ group_id: group, msg: 'hello' }, key)).status, 200)
    assert.deepEqual(relay.texts(), ['hello'])
  })
})

describe('what could not leave', () => {
  const calls = ({ simulator }: Pick<StoredRelay, 'simulator'>, part: string): number =>
    simulator.calls.filter(({ action, params }) => action.startsWith('send_') && JSON.stringify(params).includes(part)).length
  const absences = async (relay: StoredRelay): Promise<number> =>
    Number(/lookups_total\{finding="absent"\} (\d+)/.exec(await (await relay.request('/metrics')).text())?.[1])
  /** Resolves when nothing is looked for any more, in the pause before the next call. */
  const lookedForInVain = async (relay: StoredRelay): Promise<void> => {
    let [count, since] = [0, 0]
    await until('it was looked for in vain', async () => {
      const present = await absences(relay)
      if (present !== count) [count, since] = [present, performance.now()]
      return count > 0 && performance.now() - since > 500
    }, 30_000)
  }

  test('once more is not overtaken by the rest of its batch', async t => {
    const relay = await relayWith(t, { config: { ...once, chatApiMaxRetries: 1, chatSendInterval: 2 } })
    await relay.post({ group_id: group, msg: 'before' })
    relay.simulator.fault({ fault: { kind: 'silent' }, action: /^send_/ })
    const id = await send(relay, { messages: [{ msg: 'text' }, { type: 'video', url: 'base64://YQ==' }] }, later)
    await lookedForInVain(relay)
    const goOnline = await takeOffline(relay)
    const isWaiting = async (): Promise<boolean> => {
      const { state, results } = await relay.show(id)
      return state === 'queued' || results.some(result => result.outcome === 'unsent')
    }
    await until('the text could not leave', isWaiting, 30_000)
    await goOnline()
    await until('all of it has arrived', async () => (await relay.show(id)).state === 'sent', 30_000)
    assert.deepEqual(relay.simulator.ledger.map(({ media }) => media.length), [0, 0, 1])
  })

  test('leaves the rest as open as it was, also for the next process', async t => {
    const relay = await victim(t, { ...once, chatApiMaxRetries: 3 })
    relay.simulator.fault({ fault: { kind: 'silent' }, action: /^send_/ })
    const video = { type: 'video', url: `base64://${Buffer.from('....ftypisom').toString('base64')}` }
    assert.equal((await relay.post({ group_id: group, messages: [video, { msg: 'text' }] }, later)).status, 202)
    await until('the video has left', () => calls(relay, 'video') === 1)
    await relay.simulator.goOffline()
    await until('the text waits', async () => (await relay.states()).join() === 'queued', 20_000)
    await relay.simulator.goOnline()
    await until('the text has left', async () => (await relay.states()).join() === 'unanswered', 20_000)
    assert.deepEqual(relay.texts(), ['text'])
    await relay.kill()
    await relay.start()
    await relay.online()
    const [, id = ''] = /"id":"([^"]+)"/.exec(await (await relay.get('/deliveries')).text()) ?? []
    const again = await relay.retry(id)
    assert.equal(again.status, 409)
    assert(Number(again.headers.get('retry-after')) > 500, 'a video may take ten minutes')
  })
})

test('nothing is looked for that is in no doubt', async t => {
  const relay = await relayWith(t, { config: once })
  await relay.post({ group_id: group, msg: 'before' })
  relay.simulator.fault({ fault: { kind: 'silent' }, action: /^send_/ })
  const file = { type: 'file', url: 'base64://YQ==', filename: 'a.log' }
  const id = await send(relay, { messages: [{ msg: 'text' }, file, file] }, later)
  await relay.reaches(id, 'unanswered')
  const looks = (): number => relay.simulator.calls.filter(({ action }) => action.includes('history')).length
  await until('it has settled', async () => {
    const before = looks()
    const { status } = await relay.ask(`/deliveries/${id}/retry`, 'POST')
    if (status === 409) return false
    assert.equal(status, 202)
    await relay.reaches(id, 'sent')
    assert.equal(looks() - before, 1)
    return true
  })
  assert.deepEqual(relay.texts(), ['before', '', '', 'text'])
})

test('each of several targets is told when its key may be asked again', async t => {
  const relay = await relayWith(t, { config: { chatApiTimeout: 0.5, chatSettleTime: 30, chatApiMaxRetries: 0 } })
  relay.simulator.fault({ fault: { kind: 'silent' }, times: 2 })
  const { data } = await relay.post({ to: [`group:${group}`, `group:${other}`], msg: 'hello' }, key)
  assert(Array.isArray(data.deliveries))
  const told = data.deliveries.map((entry: Record<string, unknown>) => [entry.code, Number(entry.retry_after) > 20])
  assert.deepEqual(told, [[504, true], [504, true]])
})
