import type { Caller } from '../access/caller'
import { RelayError } from '../errors'
import { platformOf, writeTarget } from '../message/target'
import { readQueue, type HeldQueue, type Operations } from '../relay/relay'
import type { AllowedExchange, GuardedRoute } from './routes'

/** `GET /queues`, `POST /queues/<queue>/resume` and `DELETE /queues/<queue>`: what waits, what holds it, and how to go on. */
export function queueRoutes(operations: Operations): GuardedRoute[] {
  return [
    {
      path: '/queues',
      method: 'GET',
      allow: ['read', 'manage'],
      quiet: true,
      handle: async ({ caller }) => {
        const queues = await operations.held()
        return { data: { queues: queues.filter(({ queue }) => maySee(caller, queue)).map(view) } }
      },
    },
    {
      path: '/queues/:queue/resume',
      method: 'POST',
      allow: ['manage'],
      async handle(exchange) {
        const queue = await find(operations, exchange)
        operations.resume(queue)
        return { data: { queue } }
      },
    },
    {
      path: '/queues/:queue',
      method: 'DELETE',
      allow: ['manage'],
      async handle(exchange) {
        const queue = await find(operations, exchange)
        return { data: { queue, dropped: await operations.drop(queue) } }
      },
    },
  ]
}

/**
 * The queue that a request is about, as long as it is there for its caller.
 *
 * @throws RelayError `not-found`
 */
async function find(operations: Operations, exchange: AllowedExchange): Promise<string> {
  const { params: { queue: name = '' }, caller } = exchange
  const found = (await operations.held()).find(({ queue }) => queue === name)
  if (!found || !maySee(caller, name)) throw new RelayError('not-found', 'no such queue has anything that waits')
  exchange.target = writeTarget(found.target)
  return name
}

/** Whether a caller is told of a queue: its name tells where somebody sends to. */
export function maySee(caller: Caller, queue: string): boolean {
  const place = readQueue(queue)
  return place !== undefined && caller.maySendTo(place.target, platformOf(place.bot))
}

function view({ queue, bot, target, waiting, hold, pausedUntil, reason }: HeldQueue): object {
  return {
    queue, bot, target: writeTarget(target), waiting, state: hold,
    ...pausedUntil !== undefined && { paused_until: toIso(pausedUntil) },
    ...reason !== undefined && { reason },
  }
}

/** A time in milliseconds since the epoch as callers see it. */
export function toIso(time: number): string {
  return new Date(time).toISOString()
}
