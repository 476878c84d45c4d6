import { h, Universal, type Context } from 'koishi'
import type { Config } from '../../src'
import { loadAdapter, type AdapterEntry } from '../support/adapter'
import { startRelay, type TestRelay } from '../support/relay'
import { until } from '../support/until'
import type { PlatformServer } from './server'

/** A message that is in a chat. */
export interface Arrived {
  /** The chat, as targets name it, or the message that it answers. */
  to: string
  text: string
  isAnswer: boolean
}

/** A platform that runs in this process. */
export interface Platform {
  readonly server: PlatformServer
  readonly adapter: AdapterEntry
  /** What has arrived, in its order. */
  readonly arrived: readonly Arrived[]
  /** Forgets faults, calls and messages. */
  clear: () => void
}

/** Loads the adapter of a platform, with what koishi.yml tells it. */
export function loadPlatform(app: Context, { adapter: { name, config } }: Pick<Platform, 'adapter'>) {
  return app.plugin(loadAdapter(name), config)
}

/**
 * A relay, once its bots are online.
 *
 * @param bots their platforms or whole names
 */
export async function relayWith(bots: readonly string[], load: (app: Context) => void, config: Config): Promise<TestRelay> {
  const relay = await startRelay({ config, setup: load })
  const isOnline = (name: string): boolean => relay.app.bots.some(({ platform, sid, status }) => (
    [platform, sid].includes(name) && status === Universal.Status.ONLINE
  ))
  await until('all bots are online', () => bots.every(isOnline))
  return relay
}

/** Another plugin writes behind each message, until it is told not to. */
export function signAll({ app }: TestRelay, ...more: h[]): () => void {
  return app.on('before-send', session => {
    session.elements = [...session.elements ?? [], h('b', 'signed'), ...more]
  })
}
