import type { Access } from '../access/access'
import type { Refusals } from '../access/refusals'
import type { Counts } from '../access/usage'
import { RelayError } from '../errors'
import { toIso } from '../lib/time'
import { explain, type Reason } from '../message/causes'
import type { Backlog } from '../relay/queue/queue'
import type { Relay } from '../relay/relay'
import { clauses, say } from '../texts/text'
import { maySee } from './queues'
import { route, type Route } from './routes'
import { viewBlock } from './views'

/** `GET /healthz`: tells anyone that the service runs. */
export const healthRoute: Route = route('GET', '/healthz', 'anyone', () => ({ data: { health: 'ok' } }), { quiet: true })

/** `GET /readyz`: tells anyone whether a message could be sent and kept now, and if not, why. */
export function readyRoute(relay: Pick<Relay, 'failure' | 'standsBehind'>, isOnline: () => boolean): Route {
  return route('GET', '/readyz', 'anyone', () => {
    if (relay.standsBehind !== undefined) throw new RelayError('unsent', clauses(say('not-ready'), say('stands-by-for-other')))
    const { failure } = relay
    if (failure) throw new RelayError('unsent', clauses(say('not-ready'), failure.said))
    if (!isOnline()) throw new RelayError('unsent', clauses(say('not-ready'), say('no-bot-online')))
    return { data: { ready: true } }
  }, { quiet: true })
}

/**
 * `GET /statusz`: the state of bots, queues and keys. The path is not `/status`, because that is the WebSocket of Koishi's console: a
 * proxy that forwards it for monitoring would expose the console as well.
 *
 * @param bots the fields to show, with the time of the last change in milliseconds since the epoch
 */
export function statusRoute(
  relay: Pick<Relay, 'queues' | 'backlog' | 'standsBehind'>, bots: () => readonly (Partial<Reason> & { since: number })[],
  { access, refusals }: { access: Pick<Access, 'usage'>, refusals: Pick<Refusals, 'last'> },
): Route {
  return route('GET', '/statusz', ['read'], ({ caller }) => ({
    data: {
      bots: bots().map(({ cause, words, ...bot }) => ({ ...bot, since: toIso(bot.since), ...cause && { cause: explain(cause, words) } })),
      queues: relay.queues().filter(({ queue }) => maySee(caller, queue))
        .map(({ queue, waiting, block }) => ({ queue, waiting, ...viewBlock(block) })),
      outbox: viewBacklog(relay.backlog()),
      ...relay.standsBehind !== undefined && { standby_for: relay.standsBehind },
      ...caller.may('manage') && {
        keys: [...access.usage()].map(([name, usage]) => viewUsage(name, usage)),
        refusals: viewLast(refusals, false),
        skipped: viewLast(refusals, true),
      },
    },
  }), { quiet: true })
}

/** @param name `null` for the master key */
function viewUsage(name: string | null, { last, address, ...counts }: Counts): object {
  return { name, ...last > 0 && { last_used: toIso(last), last_address: address ?? null }, ...counts }
}

function viewLast({ last }: Pick<Refusals, 'last'>, isSkipped: boolean): object[] {
  return [...last].filter(([, each]) => each.isSkipped === isSkipped).map(([door, { at, reason }]) => ({ door, at: toIso(at), reason }))
}

function viewBacklog(backlog: Backlog | undefined): object | null {
  if (!backlog) return null
  const { size, oldest } = backlog
  return { size, ...oldest !== undefined && { oldest: toIso(oldest) } }
}

/** `GET /metrics`: metrics for Prometheus. */
export function metricsRoute(read: () => Promise<{ type: string, body: string }>): Route {
  return route('GET', '/metrics', ['read'], async () => {
    const { type, body } = await read()
    return { status: 200, type, body }
  }, { quiet: true })
}
