import type { Access } from '../access/access'
import type { Usage } from '../access/caller'
import { RelayError } from '../errors'
import { inTime } from '../lib/async'
import type { Backlog, Operations } from '../relay/relay'
import { maySee, toIso } from './queues'
import type { GuardedRoute, OpenRoute } from './routes'

/** How long the check of readiness may take, in milliseconds: "not ready" tells a probe more than no answer does. */
const checkTime = 2_000
/** For how long it is remembered what the database answered, in milliseconds: anyone may ask, as often as they like. */
const memory = 1_000

/** `GET /healthz`: says that the service answers, to anyone. */
export const healthRoute: OpenRoute = {
  path: '/healthz',
  method: 'GET',
  allow: 'anyone',
  quiet: true,
  handle: () => ({ data: { health: 'ok' } }),
}

/**
 * `GET /readyz`: whether a message could be sent now, to anyone. It tells nothing else, not even why not.
 *
 * @param now milliseconds on the monotonic clock
 */
export function readyRoute(operations: Pick<Operations, 'ping'>, isOnline: () => boolean, now = () => performance.now()): OpenRoute {
  const ping = async (): Promise<true> => {
    await operations.ping()
    return true
  }
  let last: { at: number, answers: Promise<true | undefined> } | undefined
  const doesAnswer = (): Promise<true | undefined> => {
    if (!last || now() - last.at >= memory) last = { at: now(), answers: inTime(ping, checkTime) }
    return last.answers
  }
  return {
    path: '/readyz',
    method: 'GET',
    allow: 'anyone',
    quiet: true,
    async handle() {
      if (await doesAnswer() !== true || !isOnline()) throw new RelayError('unsent', 'not ready')
      return { data: { ready: true } }
    },
  }
}

/** A bot as `GET /statusz` shows it. */
export interface BotState {
  platform: string
  self_id: string
  status: string
}

/**
 * `GET /statusz`: what goes on in the relay, for whoever may read. It is not `/status`, which is the WebSocket path of Koishi's
 * console: whoever forwarded that for monitoring would forward the console as well.
 */
export function statusRoute(operations: Pick<Operations, 'states' | 'backlog'>, bots: () => BotState[], access: Pick<Access, 'usage'>): GuardedRoute {
  return {
    path: '/statusz',
    method: 'GET',
    allow: ['read'],
    quiet: true,
    handle: async ({ caller }) => ({
      data: {
        bots: bots(),
        queues: operations.states().filter(({ queue }) => maySee(caller, queue)).map(({ queue, waiting, pausedUntil }) => ({
          queue, waiting, ...pausedUntil !== undefined && { paused_until: toIso(pausedUntil) },
        })),
        // The rest is wanted most just when the database does not answer.
        outbox: await operations.backlog().then(viewBacklog, () => 'unavailable'),
        ...caller.may('manage') && { keys: [...access.usage()].map(([name, usage]) => viewUsage(name, usage)) },
      },
    }),
  }
}

/** @param name `null` for the master key */
function viewUsage(name: string | null, { last, address, messages, refused }: Usage): object {
  return { name, ...last > 0 && { last_used: toIso(last), last_address: address ?? null }, messages, refused }
}

function viewBacklog(backlog: Backlog | undefined): object | null {
  if (!backlog) return null
  const { size, oldest } = backlog
  return { size, ...oldest !== undefined && { oldest: toIso(oldest) } }
}
