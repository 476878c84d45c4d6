import type { Caller } from '../access/caller'
import { RelayError } from '../errors'
import { platformOf, writeTarget } from '../message/target'
import { readQueue } from '../relay/queue/queue'
import type { Relay } from '../relay/relay'
import { say } from '../texts/text'
import { route, type Exchange, type Route } from './routes'
import { viewHold, viewQueue } from './views'

/** `GET /queues`, `POST /queues/<queue>/resume` and `DELETE /queues/<queue>`: lists, resumes and empties queues. */
export function queueRoutes(relay: Pick<Relay, 'queues' | 'resume' | 'drop'>): Route[] {
  return [
    route('GET', '/queues', ['read', 'manage'], ({ caller }) => {
      const queues = relay.queues()
      return { data: { queues: queues.filter(({ queue }) => maySee(caller, queue)).map(viewQueue) } }
    }, { quiet: true }),
    route('POST', '/queues/:queue/resume', ['manage'], async exchange => {
      const queue = find(relay, exchange)
      await relay.resume(queue)
      return { data: { queue, ...viewHold(relay.queues().find(each => each.queue === queue)?.block) } }
    }),
    route('DELETE', '/queues/:queue', ['manage'], async exchange => {
      const queue = find(relay, exchange)
      return { data: { queue, dropped: await relay.drop(queue) } }
    }),
  ]
}

/**
 * Finds the queue of a request, if the caller may see it.
 *
 * @throws RelayError `not-found`
 */
function find(relay: Pick<Relay, 'queues'>, exchange: Exchange): string {
  const { params: { queue: name = '' }, caller } = exchange
  const found = relay.queues().find(({ queue }) => queue === name)
  if (!found || !maySee(caller, name)) throw new RelayError('not-found', say('no-such-queue'))
  exchange.target = writeTarget(found.target)
  return name
}

/** Whether a caller may see a queue: the name of the queue reveals its target. */
export function maySee(caller: Caller, queue: string): boolean {
  const place = readQueue(queue)
  return place !== undefined && caller.maySendTo(place.target, platformOf(place.bot))
}
