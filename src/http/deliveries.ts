import { validate as isUuid } from 'uuid'
import { RelayError } from '../errors'
import type { ListFilter } from '../relay/filter'
import { states, view } from '../relay/delivery'
import type { Registry } from '../relay/registry'
import { readTarget } from '../message/target'
import type { Exchange, Route } from './routes'

const defaultLimit = 100
const maxLimit = 1000

/** `GET /deliveries`, `GET` and `DELETE /deliveries/<id>`, `POST /deliveries/<id>/retry`. */
export function deliveryRoutes(registry: Registry, prefix: string): Route[] {
  return [
    {
      path: '/deliveries',
      method: 'GET',
      async handle({ query }) {
        const deliveries = await registry.list(parseFilter(query))
        return { data: { deliveries: deliveries.map(view) } }
      },
    },
    {
      path: '/deliveries/:id',
      method: 'GET',
      handle: async exchange => ({ data: view(await registry.get(idOf(exchange))) }),
    },
    {
      path: '/deliveries/:id',
      method: 'DELETE',
      async handle(exchange) {
        const id = idOf(exchange)
        await registry.withdraw(id)
        return { data: { delivery_id: id, state: 'withdrawn' } }
      },
    },
    {
      path: '/deliveries/:id/retry',
      method: 'POST',
      async handle(exchange) {
        const { id, state } = await registry.retry(idOf(exchange))
        exchange.response.setHeader('Location', `${prefix}/deliveries/${id}`)
        return { status: 202, data: { delivery_id: id, state } }
      },
    },
  ]
}

function idOf({ params }: Exchange): string {
  return (params.id ?? '').toLowerCase()
}

/** @throws RelayError `bad-request` */
function parseFilter(query: URLSearchParams): ListFilter {
  const filter: ListFilter = { limit: defaultLimit }
  const limit = query.get('limit')
  if (limit) {
    if (!/^\d{1,4}$/.test(limit) || Number(limit) < 1 || Number(limit) > maxLimit) {
      throw new RelayError('bad-request', `limit must be a number from 1 to ${maxLimit}`)
    }
    filter.limit = Number(limit)
  }
  const state = query.get('state')
  if (state) {
    const known = states.find(name => name === state)
    if (!known) throw new RelayError('bad-request', `state must be one of ${states.join(', ')}`)
    filter.state = known
  }
  const target = query.get('target')
  if (target) {
    const known = readTarget(target)
    if (!known) throw new RelayError('bad-request', 'target must be group:<id> or private:<id>')
    filter.target = known
  }
  const before = query.get('before')
  if (before) {
    if (!isUuid(before)) throw new RelayError('bad-request', 'before must be the ID of a delivery')
    filter.before = before.toLowerCase()
  }
  return filter
}
