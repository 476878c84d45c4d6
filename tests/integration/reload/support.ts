import assert from 'node:assert/strict'
import type { Config } from '../../../src'
import { until } from '../../support/until'
import { group, type StoredRelay } from '../deliveries/support'
import { sends } from '../webhook/support'

/** A way to load the plugin anew with another configuration, by its name. */
type Way = readonly [name: string, reload: (relay: StoredRelay, config: Config) => Promise<void>]

export const edit: Way = ['an edit on the config page', (relay, config) => relay.update(config)]

export const pause: Way = ['unloading, and loading a moment later', async (relay, config) => {
  relay.unload()
  await relay.app.lifecycle.flush()
  await new Promise(resolve => setImmediate(resolve))
  await relay.reload(config)
}]

/** The time between one send and the next, in milliseconds. */
export function gaps(relay: StoredRelay): number[] {
  const times = sends(relay).map(({ time }) => time)
  return times.slice(1).map((time, index) => time - (times[index] ?? 0))
}

/** How many wait in the queue of the group. */
export async function waiting(relay: StoredRelay): Promise<number> {
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
