import { RelayError } from '../errors'
import type { Route } from './routes'

/** How long the check of readiness may take, in milliseconds: "not ready" tells a probe more than no answer does. */
const checkTime = 2_000

/** `GET /healthz`: says that the service answers, to anyone. */
export const healthRoute: Route = {
  path: '/healthz',
  method: 'GET',
  open: true,
  quiet: true,
  handle: () => ({ data: { health: 'ok' } }),
}

/** `GET /readyz`: whether a message could be sent now, to anyone. It tells nothing else, not even why not. */
export function readyRoute(isReady: () => Promise<boolean>): Route {
  return {
    path: '/readyz',
    method: 'GET',
    open: true,
    quiet: true,
    async handle() {
      if (!await inTime(isReady)) throw new RelayError('unsent', 'not ready')
      return { data: { ready: true } }
    },
  }
}

/** Whether the check says yes before its time is over. */
async function inTime(isReady: () => Promise<boolean>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<boolean>(resolve => {
    timer = setTimeout(() => resolve(false), checkTime)
  })
  try {
    return await Promise.race([isReady(), over])
  } catch {
    return false
  } finally {
    clearTimeout(timer)
  }
}

/** What the status is read from. */
export interface StatusSources {
  bots: () => { platform: string, self_id: string, status: string }[]
  /** `pausedUntil` is in milliseconds since the epoch. */
  queues: () => { queue: string, waiting: number, pausedUntil?: number }[]
  /** What the database holds that is not delivered yet; `undefined` where there is no database; throws where it does not answer. */
  outbox: () => Promise<{ size: number, oldest?: number } | undefined>
}

/**
 * `GET /statusz`: what goes on in the relay, for whoever has the key. It is not `/status`, which is the WebSocket path of Koishi's
 * console: whoever forwarded that for monitoring would forward the console as well.
 */
export function statusRoute({ bots, queues, outbox }: StatusSources): Route {
  return {
    path: '/statusz',
    method: 'GET',
    quiet: true,
    handle: async () => ({
      data: {
        bots: bots(),
        queues: queues().map(({ queue, waiting, pausedUntil }) => ({
          queue, waiting, ...pausedUntil !== undefined && { paused_until: toIso(pausedUntil) },
        })),
        // The rest is wanted most just when the database does not answer.
        outbox: await outbox().then(viewOutbox, () => 'unavailable'),
      },
    }),
  }
}

function viewOutbox(outbox: Awaited<ReturnType<StatusSources['outbox']>>): object | null {
  if (!outbox) return null
  const { size, oldest } = outbox
  return { size, ...oldest !== undefined && { oldest: toIso(oldest) } }
}

function toIso(time: number): string {
  return new Date(time).toISOString()
}
