import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as prometheus from 'prom-client'
import { RelayError } from '../../../src/errors'
import { createInstruments } from '../../../src/metrics/instruments'
import { Recorder, type Sources } from '../../../src/metrics/recorder'
import { createDelivery, settle, type Delivery, type Results } from '../../../src/relay/delivery/delivery'

const quiet: Sources = {
  bots: () => [], queues: () => [], capacity: 1000, backlog: () => Promise.resolve(undefined), refusals: () => new Map(),
}

function start(): { recorder: Recorder, read: (sources?: Partial<Sources>) => Promise<string> } {
  const recorder = new Recorder(createInstruments(prometheus), ['webhook', 'hooks/github'])
  return { recorder, read: async sources => (await recorder.read({ ...quiet, ...sources })).body }
}

/** A delivery by this door with these results. */
function ended(door: string, results: Results): Delivery {
  const request = { mode: 'batch' as const, target: { kind: 'group' as const, id: '1' }, bot: {}, items: [] }
  const delivery = createDelivery('id', 0, request, undefined, { door })
  return { ...delivery, ...settle(delivery, results) }
}

const sent = { success: true as const, messageIds: ['1'] }
const failed = (code: 'refused' | 'unsent' | 'unanswered' | 'expired' | 'file-not-found') => ({ success: false as const, error: new RelayError(code) })

function assertLines(text: string, ...lines: string[]): void {
  const found = text.split('\n')
  for (const line of lines) assert(found.includes(`message_relay_${line}`), `${line} is not in\n${text}`)
}

describe('deliveries', () => {
  const cases: [results: Results, outcome: string][] = [
    [[sent], 'sent'],
    [[failed('refused')], 'refused'],
    [[failed('unsent')], 'unsent'],
    [[failed('file-not-found')], 'unsent'],
    [[failed('expired')], 'expired'],
    [[failed('unanswered')], 'unanswered'],
    [[sent, failed('refused')], 'refused'],
    [[failed('file-not-found'), failed('refused')], 'refused'],
    [[sent, failed('refused'), failed('unanswered')], 'unanswered'],
  ]
  for (const [results, outcome] of cases) {
    test(`of ${results.map(result => result?.success ? 'sent' : result?.error.code).join(' and ')} are ${outcome}`, async () => {
      const { recorder, read } = start()
      assertLines(await read(), `deliveries_total{door="webhook",outcome="${outcome}"} 0`)
      recorder.ended(ended('webhook', results), 20)
      assertLines(await read(), `deliveries_total{door="webhook",outcome="${outcome}"} 1`)
    })
  }

  test('are timed where they were sent', async () => {
    const { recorder, read } = start()
    recorder.ended(ended('webhook', [sent]), 30)
    recorder.ended(ended('webhook', [sent]), 200_000)
    recorder.ended(ended('webhook', [failed('refused')]), 30)
    assertLines(await read(),
      'delivery_duration_seconds_bucket{le="0.025",door="webhook"} 0', 'delivery_duration_seconds_bucket{le="0.05",door="webhook"} 1',
      'delivery_duration_seconds_bucket{le="120",door="webhook"} 1', 'delivery_duration_seconds_bucket{le="300",door="webhook"} 2',
      'delivery_duration_seconds_count{door="webhook"} 2', 'delivery_duration_seconds_sum{door="webhook"} 200.03')
  })

  test('have no name of a template in their labels', async () => {
    const { recorder, read } = start()
    for (const door of ['hooks/github', 'hooks/secret-project', 'hooks/other-project', '']) recorder.ended(ended(door, [sent]), 1)
    const text = await read()
    assertLines(text, ...['hooks/github"', 'hooks/template"', 'unknown"'].map((door, index) => `deliveries_total{door="${door},outcome="sent"} ${[1, 2, 1][index]}`))
    assert(!text.includes('project'))
  })
})

test('calls are timed and counted by outcome, look-ups by finding', async () => {
  const { recorder, read } = start()
  assertLines(await read(), 'call_duration_seconds_count{outcome="unanswered"} 0', 'lookups_total{finding="found"} 0')
  recorder.called('sent', 4)
  recorder.called('unanswered', 10_000)
  recorder.lookedUp('no-history')
  recorder.paused()
  assertLines(await read(),
    'call_duration_seconds_bucket{le="0.005",outcome="sent"} 1', 'call_duration_seconds_count{outcome="unanswered"} 1',
    'call_duration_seconds_sum{outcome="unanswered"} 10', 'lookups_total{finding="no-history"} 1', 'pauses_total 1')
})

test('requests are counted by route, method and status, uploads with their bytes', async () => {
  const { recorder, read } = start()
  recorder.answered('/webhook', 'POST', 200)
  recorder.answered('/webhook', undefined, 405)
  recorder.received(2, 1234)
  assertLines(await read(),
    'http_requests_total{route="/webhook",method="POST",status="200"} 1', 'http_requests_total{route="/webhook",method="other",status="405"} 1',
    'uploads_total 2', 'upload_bytes_total 1234')
})

describe('how things stand', () => {
  test('is asked for each time', async () => {
    const { read } = start()
    const now = Date.now()
    const text = await read({
      bots: () => [{ status: 'online' }, { status: 'offline' }, { status: 'online' }],
      queues: () => [
        { queue: 'a', waiting: 3, callers: 3, isBusy: true, oldest: now - 60_000 },
        { queue: 'b', waiting: 5, callers: 0, isBusy: false, oldest: now - 5_000, pausedUntil: now + 1 },
        { queue: 'c', waiting: 0, callers: 0, isBusy: false, pausedUntil: now + 1 },
      ],
      backlog: () => Promise.resolve({ size: 12, oldest: now - 3_600_000 }),
      refusals: () => new Map([['unauthorized', 7]]),
    })
    assertLines(text,
      'bots{status="online"} 2', 'bots{status="offline"} 1', 'bots{status="reconnecting"} 0', 'queue_waiting 8', 'queue_waiting_longest 5',
      'queue_capacity 1000', 'queues_paused 2', 'outbox_waiting 12', 'refusals_total{reason="unauthorized"} 7', 'refusals_total{reason="forbidden"} 0')
    assert.match(text, /^message_relay_oldest_waiting_seconds 3600(?:\.\d+)?$/m)
    assertLines(await read(), 'queue_waiting 0', 'queues_paused 0', 'oldest_waiting_seconds 0', 'bots{status="online"} 0')
  })

  test('leaves out what the database does not tell', async () => {
    const { read } = start()
    assert.match(await read({ backlog: () => Promise.resolve({ size: 1 }) }), /^message_relay_outbox_waiting 1$/m)
    assert.doesNotMatch(await read({ backlog: () => Promise.reject(new Error('away')) }), /^message_relay_outbox_waiting /m)
    assert.doesNotMatch(await read({ backlog: () => new Promise(() => undefined) }), /^message_relay_outbox_waiting /m)
    assert.match(await read({ backlog: () => Promise.resolve({ size: 2 }) }), /^message_relay_outbox_waiting 2$/m)
  })
})
