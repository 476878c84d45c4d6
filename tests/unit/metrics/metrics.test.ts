import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { RelayError } from '../../../src/errors'
import { Metrics, type Sources } from '../../../src/metrics'
import { createDelivery, end, type Delivery, type Results } from '../../../src/relay/delivery/delivery'
import type { QueueState } from '../../../src/relay/queue/queue'
import { words } from '../../../src/texts/text'

const quiet: Sources = {
  bots: () => [], queues: () => [], capacity: 1000, backlog: () => undefined, refusals: () => new Map(),
  incidents: () => new Map(), beats: () => new Map(),
}

function start(): { metrics: Metrics, read: (sources?: Partial<Sources>) => Promise<string> } {
  const metrics = new Metrics(['webhook', 'hooks/github'])
  return { metrics, read: async sources => (await metrics.read({ ...quiet, ...sources })).body }
}

/** A delivery by this door with these results. */
function ended(door: string, results: Results): Delivery {
  const request = { mode: 'batch' as const, target: { kind: 'group' as const, id: '1' }, bot: {}, items: [] }
  const delivery = createDelivery({ id: 'id', caller: null, door }, 1, 0, request)
  return { ...delivery, ...end(delivery, results) }
}

const sent = { success: true as const, messageIds: ['1'] }
const failed = (code: 'refused' | 'unsent' | 'unanswered' | 'expired' | 'file-not-found') => ({ success: false as const, error: new RelayError(code) })

function assertLines(text: string, ...lines: string[]): void {
  const found = text.split('\n')
  for (const line of lines) assert(found.includes(`message_relay_${line}`), `${line} is not in\n${text}`)
}

describe('deliveries', () => {
  const cases: [results: Results, outcome: string][] = [
    [[sent], 'sent'], [[failed('refused')], 'refused'], [[failed('unsent')], 'unsent'], [[failed('file-not-found')], 'unsent'],
    [[failed('expired')], 'expired'], [[failed('unanswered')], 'unanswered'], [[sent, failed('refused')], 'refused'],
    [[failed('file-not-found'), failed('refused')], 'refused'], [[sent, failed('refused'), failed('unanswered')], 'unanswered'],
  ]
  test('have the outcome of what became of their items', async () => {
    for (const [results, outcome] of cases) {
      const { metrics, read } = start()
      assertLines(await read(), `deliveries_total{door="webhook",outcome="${outcome}"} 0`)
      metrics.ended(ended('webhook', results), 20)
      assertLines(await read(), `deliveries_total{door="webhook",outcome="${outcome}"} 1`)
    }
  })

  test('have no name of a template in their labels', async () => {
    const { metrics, read } = start()
    for (const door of ['hooks/github', 'hooks/secret-project', 'hooks/other-project', '']) metrics.ended(ended(door, [sent]), 1)
    const text = await read()
    assertLines(text, ...['hooks/github"', 'hooks/template"', 'unknown"'].map((door, index) => `deliveries_total{door="${door},outcome="sent"} ${[1, 2, 1][index]}`))
    assert(!text.includes('project'))
  })
})

test('digests are counted by their size, and ways by their place', async () => {
  const { metrics, read } = start()
  assertLines(await read(), 'digest_deliveries_count 0', 'ways_total{place="2"} 0')
  const members = Array.from({ length: 7 }, (_, index) => ({ id: String(index), shown: true }))
  metrics.ended({ ...ended('webhook', [sent]), flow: { members } }, 1)
  const route = { name: 'oncall', ways: [], after: 1, whenUnknown: 'stop' as const, index: 1, past: [] }
  for (const results of [[sent], [failed('refused')]]) metrics.ended({ ...ended('webhook', results), flow: { route } }, 1)
  assertLines(await read(), 'digest_deliveries_bucket{le="5"} 0', 'digest_deliveries_bucket{le="10"} 1', 'ways_total{place="2"} 1')
})

test('calls and deliveries are timed, and counted by outcome, look-ups by finding', async () => {
  const { metrics, read } = start()
  assertLines(await read(), 'call_duration_seconds_count{outcome="unanswered"} 0', 'lookups_total{finding="found"} 0')
  for (const time of [30, 200_000]) metrics.ended(ended('webhook', [sent]), time)
  metrics.ended(ended('webhook', [failed('refused')]), 30)
  metrics.called('sent', 4)
  metrics.called('unanswered', 10_000)
  metrics.lookedUp('no-history')
  metrics.paused()
  assertLines(await read(),
    'delivery_duration_seconds_bucket{le="0.025",door="webhook"} 0', 'delivery_duration_seconds_bucket{le="0.05",door="webhook"} 1',
    'delivery_duration_seconds_bucket{le="300",door="webhook"} 2', 'delivery_duration_seconds_sum{door="webhook"} 200.03',
    'call_duration_seconds_bucket{le="0.005",outcome="sent"} 1', 'call_duration_seconds_count{outcome="unanswered"} 1',
    'call_duration_seconds_sum{outcome="unanswered"} 10', 'lookups_total{finding="no-history"} 1', 'pauses_total 1')
})

test('how things stand is asked for each time, the outbox only where the relay is active', async () => {
  const { read } = start()
  const now = Date.now()
  const queue = { bot: 'onebot:1', target: { kind: 'group', id: '1' } } as const
  const queues: QueueState[] = [
    { ...queue, queue: 'a', waiting: 3, state: 'busy', oldest: now - 60_000 },
    { ...queue, queue: 'b', waiting: 5, state: 'paused', oldest: now - 5_000, block: { state: 'paused', cause: 'paused', reason: words(''), until: now } },
    { ...queue, queue: 'c', waiting: 0, state: 'paused' },
    {
      ...queue, queue: 'd', waiting: 9, state: 'held', block: { state: 'held', cause: 'muted', reason: words(''), since: now, until: null },
      later: { count: 10, kinds: { scheduled: 4, quiet: 1, digest: 5 }, next: 1 },
    },
  ]
  const text = await read({
    bots: () => [{ status: 'online' }, { status: 'offline' }, { status: 'online' }],
    queues: () => queues,
    backlog: () => ({ size: 12, oldest: now - 3_600_000 }),
    refusals: () => new Map([['unauthorized', 7]]),
  })
  assertLines(text,
    'bots{status="online"} 2', 'bots{status="offline"} 1', 'bots{status="connecting"} 0', 'queue_waiting 17', 'queue_waiting_longest 9',
    'queue_capacity 1000', 'queues_paused 2', 'outbox_waiting 12',
    'queues_held 1', 'scheduled 4', 'held{reason="quiet"} 1', 'held{reason="digest"} 5', 'held{reason="muted"} 3', 'held{reason="paused"} 5', 'refusals_total{reason="unauthorized"} 7', 'refusals_total{reason="forbidden"} 0')
  assert.match(text, /^message_relay_oldest_waiting_seconds 3600(?:\.\d+)?$/m)
  const later = await read()
  assertLines(later, 'queue_waiting 0', 'queues_paused 0', 'oldest_waiting_seconds 0', 'bots{status="online"} 0')
  assert.doesNotMatch(later, /^message_relay_outbox_waiting /m)
})

test('incidents are counted by state where the file can be read, timed until taken and resolved, and their steps counted', async () => {
  const { metrics, read } = start()
  metrics.happened('opened', 0)
  for (const time of [45_000, 400_000]) metrics.happened('taken', time)
  metrics.happened('escalated', 300_000)
  metrics.happened('resolved', 2_460_000)
  assertLines(await read({ incidents: () => new Map([['open', 2], ['resolved', 9]]) }),
    'incidents{state="open"} 2', 'incidents{state="taken"} 0', 'incidents{state="silenced"} 0',
    'incident_taken_seconds_bucket{le="30"} 0', 'incident_taken_seconds_bucket{le="60"} 1', 'incident_taken_seconds_count 2',
    'incident_resolved_seconds_sum 2460', 'incident_steps_total 1')
  assert.doesNotMatch(await read({ incidents: () => undefined }), /^message_relay_incidents\{/m)
})
