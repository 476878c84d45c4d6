import type { Context } from 'koishi'
import { unwrap } from '../lib/koishi'
import { day } from '../lib/time'
import { systemClock } from './clock'
import { Memory } from './core'
import type { RelayOptions } from './options'
import { Relay } from './relay'
import { fileStorage, type FileStorageOptions } from './store/file-storage'

/** What the relays of an app share, one after the other, and the end of the last one. */
const apps = new WeakMap<object, { memory: Memory, last: Promise<void> }>()

/** The settings of the core, in the units of koishi.yml: times in seconds, the retention in days. */
export interface RelaySettings extends Pick<RelayOptions, 'recordLimit' | 'recordContent' | 'longText'> {
  chatApiMaxRetries: number
  chatRetryUnanswered: RelayOptions['policy']['retryUnanswered']
  chatSettleTime: number
  chatSendInterval: number
  chatAccountInterval: number
  chatQueueLimit: number
  chatPauseAfter: number
  chatPauseTime: number
  backlogDigest: number
  mediaTransport: RelayOptions['media']['transport']
  recordRetention: number
}

/** What the core needs of the other parts. */
export interface RelayParts extends FileStorageOptions, Pick<RelayOptions, 'port' | 'files' | 'enter' | 'observer'> {
  /** The time-out of a call, in whole milliseconds. */
  timeout: number
  writeDigest: RelayOptions['digest']['write']
  media: Omit<RelayOptions['media'], 'transport'>
}

/**
 * Starts the relay of an app. After a reload of the plugin it begins once the earlier one has ended, and shares what that one knew.
 *
 * @returns the relay, and a promise that resolves once it and the earlier ones have ended
 */
export function startRelay(ctx: Context, settings: RelaySettings, parts: RelayParts): { relay: Relay, ended: Promise<void> } {
  const key = unwrap(ctx.root)
  const app = apps.get(key) ?? { memory: new Memory(systemClock), last: Promise.resolve() }
  apps.set(key, app)
  const relay = new Relay(app.memory, optionsOf(settings, parts), fileStorage(parts), app.last)
  app.last = app.last.then(() => relay.ended)
  return { relay, ended: app.last }
}

function optionsOf(settings: RelaySettings, parts: RelayParts): RelayOptions {
  const { recordLimit, recordContent, longText } = settings
  const { timeout, writeDigest, media, port, files, enter, observer, logger } = parts
  return {
    clock: systemClock, port, files, enter, observer, logger, recordLimit, recordContent, longText,
    policy: {
      timeout, retries: settings.chatApiMaxRetries,
      retryUnanswered: settings.chatRetryUnanswered, settleTime: settings.chatSettleTime * 1000,
    },
    queue: {
      interval: settings.chatSendInterval * 1000, accountInterval: settings.chatAccountInterval * 1000, capacity: settings.chatQueueLimit,
      pauseAfter: settings.chatPauseAfter, pauseFor: settings.chatPauseTime * 1000,
    },
    digest: { backlog: settings.backlogDigest, write: writeDigest },
    media: { ...media, transport: settings.mediaTransport },
    retention: settings.recordRetention * day,
  }
}
