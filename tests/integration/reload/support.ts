import assert from 'node:assert/strict'
import { until } from '../../support/until'
import { group, type StoredRelay } from '../deliveries/support'
import { sends } from '../webhook/support'

/** How many wait in the queue of the group. */
async function waiting(relay: StoredRelay): Promise<number> {
  const { status, data } = await relay.ask('/statusz')
  assert.equal(status, 200)
  return [...JSON.stringify(data.queues).matchAll(/"waiting":(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0)
}

/** Sends a text to the group and resolves with its pending answer once it has its place: at the platform, or in the queue. */
export async function place(relay: StoredRelay, text: string, headers?: Record<string, string>): Promise<{ answer: ReturnType<StoredRelay['post']> }> {
  const before = sends(relay).length + await waiting(relay)
  const answer = relay.post({ group_id: group, msg: text }, headers)
  await until('it has its place', async () => sends(relay).length + await waiting(relay) > before)
  return { answer }
}
