import type { Context } from 'koishi'
import { unwrap } from '../lib/koishi'
import { systemClock } from './clock'
import { Memory } from './core'
import type { RelayOptions } from './options'
import { Relay } from './relay'
import { fileStorage, type FileStorageOptions } from './store/file-storage'

/** What the relays of an app share, one after the other, and the end of the last one. */
const apps = new WeakMap<object, { memory: Memory, last: Promise<void> }>()

/**
 * Starts the relay of an app. After a reload of the plugin it begins once the earlier one has ended, and shares what that one knew.
 *
 * @returns the relay, and a promise that resolves once it and the earlier ones have ended
 */
export function startRelay(ctx: Context, options: Omit<RelayOptions, 'clock'> & FileStorageOptions): { relay: Relay, ended: Promise<void> } {
  const key = unwrap(ctx.root)
  const app = apps.get(key) ?? { memory: new Memory(systemClock), last: Promise.resolve() }
  apps.set(key, app)
  const relay = new Relay(app.memory, { ...options, clock: systemClock }, fileStorage(options), app.last)
  app.last = app.last.then(() => relay.ended)
  return { relay, ended: app.last }
}
