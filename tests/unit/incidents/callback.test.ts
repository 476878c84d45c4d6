import assert from 'node:assert/strict'
import { text } from 'node:stream/consumers'
import { describe, test, type TestContext } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { Callback, type CallbackOptions } from '../../../src/incidents/callback'
import { begin, release, resolve, silence, stepped, take, type Incident } from '../../../src/incidents/incident'
import { fieldsOf } from '../../../src/lib/shape'
import { hour, minute } from '../../../src/lib/time'
import { serve } from '../../support/listen'
import { schemaProblems } from '../../support/openapi'
import { SimulatedClock } from '../../support/simulated-clock'
import { until } from '../../support/until'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const by = { name: '李雷', key: 'cli', way: 'http' } as const

interface Post { id: string, type: string, incident: string }

/** A callback that answers with the status that `answer` gives, and what tells it. */
async function start(t: TestContext, answer: (post: Post) => number = () => 204, options: Partial<CallbackOptions> = {}) {
  const posts: Post[] = []
  const heard: string[] = []
  const logs: string[] = []
  const url = await serve(t, (request, response) => void text(request).then(body => {
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
    const { type, data, ...others } = fieldsOf(JSON.parse(body))
    assert.deepEqual(schemaProblems('/components/schemas/IncidentPost', { type, data, ...others }), [])
    new Webhook(secret).verify(body, { ...headers, 'webhook-timestamp': headers['webhook-timestamp'] ?? '' })
    const post = { id: headers['webhook-id'] ?? '', type: String(type), incident: String(fieldsOf(fieldsOf(data).incident).id) }
    posts.push(post)
    response.writeHead(answer(post)).end()
  }))
  const stop = new AbortController()
  t.after(() => stop.abort())
  const clock = new SimulatedClock(Date.now())
  const parts: CallbackOptions = {
    url, secret, timeout: 5_000, stop: stop.signal, clock, ackOf: () => undefined,
    hearers: [({ id }, { kind }) => heard.push(`${id} ${kind}`)],
    logger: { warn: line => logs.push(String(line)) }, ...options,
  }
  const callback = new Callback(parts)
  /** Tells an incident as the relay does, once a second, until that is done. */
  const tell = (incident: Incident, teller = callback): Promise<void> =>
    until('it is told', () => teller.tell(incident, incident.timeline.slice(-incident.untold)))
  return { callback, tell, posts, heard, logs, clock, again: () => new Callback(parts) }
}

function incident(clock: SimulatedClock, id = 'k3f9x'): Incident {
  const event = { severity: 'critical', title: 'disk full', chat: 'group:1', called: [] } as const
  return begin({ id, name: 'ops', thread: 'db1', caller: null }, event, clock.wall())
}

const kinds = ({ posts }: { posts: Post[] }): string[] => posts.map(({ incident: id, type }) => `${id} ${type.replace('incident.', '')}`)

describe('the callback of incidents', () => {
  test('gets what happens, signed and in order, with an ID of each that a new process repeats; plugins hear of everything', async t => {
    const started = await start(t)
    const { clock, tell, heard, posts, again } = started
    const now = clock.wall()
    const steps = [
      (each: Incident) => stepped(each, 0, [], now + 1), (each: Incident) => take(each, by, now + 2),
      (each: Incident) => release(each, by, now + 3),
      (each: Incident) => silence(each, by, now + 4, now + hour), (each: Incident) => resolve(each, now + 5),
    ]
    const full = steps.reduce((each, step) => step(each) ?? each, incident(clock))
    await tell(full)
    const expected = ['opened', 'escalated', 'taken', 'released', 'silenced', 'resolved'].map(kind => `k3f9x ${kind}`)
    assert.deepEqual([kinds(started), heard], [expected, expected])
    assert.equal(new Set(posts.map(({ id }) => id)).size, 6)
    await tell(full)
    assert.equal(posts.length, 6)

    // After a kill, with what the file has kept.
    await tell(JSON.parse(JSON.stringify(full)) as Incident, again())
    assert.deepEqual(posts.slice(6), posts.slice(0, 6))
  })

  test('that fails gets the same again after a pause, before what follows; other incidents do not wait', async t => {
    let isDown = true
    const started = await start(t, ({ incident: id }) => id === 'k3f9x' && isDown ? 500 : 200)
    const { callback, clock, tell, heard, posts, logs } = started
    const taken = take(incident(clock), by, clock.wall())
    assert(taken)
    const attempt = async (count: number): Promise<void> => {
      callback.tell(taken, taken.timeline)
      await until('it is posted', () => posts.length === count)
      for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate)
      assert.equal(callback.tell(taken, taken.timeline), false)
    }
    await attempt(1)
    assert.equal(posts.length, 1)
    await tell(incident(clock, 'other'))
    await clock.run(1_000)
    await attempt(3)
    assert.deepEqual(kinds(started), ['k3f9x opened', 'other opened', 'k3f9x opened'])
    isDown = false
    await clock.run(1_000)
    assert.equal(callback.tell(taken, taken.timeline), false)
    await clock.run(1_000)
    await tell(taken)
    assert.deepEqual(kinds(started).slice(3), ['k3f9x opened', 'k3f9x taken'])
    assert.equal(new Set(posts.map(({ id }) => id)).size, 3)
    assert.deepEqual(heard, ['k3f9x opened', 'k3f9x taken', 'other opened'])
    assert.deepEqual(logs, ['incident k3f9x: the incident callback failed, and is asked again for an hour: status 500'])
  })

  test('that stays away is given up after an hour, each event by itself', async t => {
    const { callback, clock, tell, logs, posts } = await start(t, undefined, { url: 'http://127.0.0.1:9' })
    const opened = incident(clock)
    callback.tell(opened, opened.timeline)
    await until('it has failed', () => logs.length === 1)
    await clock.run(hour + minute)
    const taken = take(opened, by, clock.wall())
    assert(taken)
    callback.tell(taken, taken.timeline)
    await until('the first is given up', () => logs.length === 2)
    assert.match(logs[1] ?? '', /^incident k3f9x: "opened" was not told to the incident callback within an hour, and is given up$/)
    await clock.run(minute)
    assert.equal(callback.tell(taken, taken.timeline), false)
    await clock.run(hour)
    await tell(taken)
    assert.equal(posts.length, 0)
  })

  test('is not asked without an address', async t => {
    const { callback, clock, heard } = await start(t, undefined, { url: '' })
    const opened = incident(clock)
    assert.equal(callback.tell(opened, opened.timeline), true)
    assert.deepEqual(heard, ['k3f9x opened'])
  })
})
