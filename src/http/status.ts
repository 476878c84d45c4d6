import type { BotState } from '../platform/status'
import type { LaneState } from '../relay/queue'
import type { Route } from './routes'

/** What the status is read from. */
export interface StatusSources {
  bots: () => BotState[]
  lanes: () => LaneState[]
  /** `undefined` where there is no database; throws where it does not answer. */
  outbox: () => Promise<{ size: number, oldest?: number } | undefined>
}

/** `GET /status`: what goes on in the relay, for whoever has the key. Not logged, because monitoring asks all the time. */
export function statusRoute({ bots, lanes, outbox }: StatusSources): Route {
  return {
    path: '/status',
    method: 'GET',
    quiet: true,
    handle: async () => ({
      data: {
        bots: bots(),
        lanes: lanes().map(({ lane, waiting, pausedUntil }) => ({ lane, waiting, ...pausedUntil && { paused_until: toIso(pausedUntil) } })),
        // Just when the database fails, the rest is what one wants to know.
        outbox: await outbox().then(describe, () => 'unavailable'),
      },
    }),
  }
}

function describe(backlog: Awaited<ReturnType<StatusSources['outbox']>>): object | null {
  if (!backlog) return null
  const { size, oldest } = backlog
  return { size, ...oldest !== undefined && { oldest: toIso(oldest) } }
}

function toIso(time: number): string {
  return new Date(time).toISOString()
}
