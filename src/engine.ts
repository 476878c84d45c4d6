import type { Context, Logger } from 'koishi'
import { resolve } from 'node:path'
import { Presence } from './platform/presence'
import type { Settings } from './config/settings'
import { isOneBot, toBotName } from './platform/bot-name'
import { Delivery } from './relay/deliver'
import { Lanes } from './relay/queue'
import { Sightings } from './platform/onebot/sightings'
import { createPassages } from './platform/passage'
import { Transmitter } from './relay/transmitter'
import { unwrap } from './lib/unwrap'
import { awaitDatabase, isDatabaseLoaded } from './relay/arrival'
import { MemoryRecords } from './relay/memory-store'
import { describe } from './relay/patience'
import { Registry } from './relay/registry'
import { createStorage, type Storage } from './relay/storage'
import { Submissions } from './relay/submissions'
import { Trace } from './relay/sent-log'
import type { StoredFile, UploadStore } from './uploads/store'

/** What the doors of the house need of its inside. */
export interface Engine {
  delivery: Delivery
  submissions: Submissions
  lanes: Lanes
  registry: Registry
  /** `undefined` where there is no database, or not yet. */
  storage: () => Storage | undefined
}

const day = 24 * 60 * 60 * 1000

/**
 * Puts together what delivers messages.
 *
 * @param link makes a link under which the platform fetches an uploaded file
 */
export function createEngine(
  ctx: Context, settings: Settings, store: UploadStore, link: (file: StoredFile) => string, logger: Logger, stop: AbortSignal,
): Engine {
  const bots = unwrap(ctx.bots)
  const interval = settings.chatSendInterval * 1000
  const lanes = new Lanes({
    interval,
    limit: settings.chatQueueLimit,
    pauseAfter: settings.chatPauseAfter,
    pauseFor: settings.chatPauseTime * 1000,
  })
  stop.addEventListener('abort', () => lanes.close())

  const sightings = new Sightings(ctx)
  const transmitter = new Transmitter({
    account: (bot, target, ids) => {
      if (isOneBot(bot)) sightings.account(bot, target, ids)
    },
    accounted: (bot, target) => isOneBot(bot) ? sightings.accounted(bot, target) : [],
    passage: createPassages(new Presence(ctx), sightings),
    attempts: {
      timeout: settings.chatApiTimeout * 1000,
      retryUnanswered: settings.chatRetryUnanswered,
      interval,
      stop,
    },
    retries: settings.chatApiMaxRetries,
    media: { transport: settings.mediaTransport, resolve: id => store.resolve(id), link },
  })
  const delivery = new Delivery({ bots, lanes, transmitter, hold: id => store.hold(id) })

  const trace = new Trace(resolve(ctx.baseDir, settings.dataDir), error => {
    logger.debug('%s', `what is sent leaves no trace for the next process: ${describe(error)}`)
  })
  for (const { bot, target, messageIds } of trace.read()) transmitter.account(toBotName(bot), target, messageIds)
  // What is under way may still end after the plugin was disposed.
  stop.addEventListener('abort', () => trace.close())

  let storage: Storage | undefined
  ctx.inject(['database'], inner => {
    storage = createStorage(inner, { lanes, transmitter, bots, logger, retention: settings.recordRetention * day, stop })
    inner.on('dispose', () => {
      storage = undefined
    })
  })

  const shared = {
    memory: new MemoryRecords(),
    storage: () => storage,
    keepUpload: (id: string, until: number) => store.keepUntil(id, until),
  }
  const arrival = awaitDatabase(ctx, stop)
  const submissions = new Submissions({
    ...shared, isDatabaseLoaded: () => isDatabaseLoaded(ctx), arrival, trace, delivery, transmitter, bots, lanes,
  })
  const registry = new Registry(shared)
  return { delivery, submissions, registry, lanes, storage: shared.storage }
}
