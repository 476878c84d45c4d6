import type { Listed, Made } from '../access/made'
import { RelayError } from '../errors'
import type { Relay } from '../relay/relay'
import { say, type Text } from '../texts/text'
import { readJson } from './body'
import { byCaller, route, type Exchange, type Route, type Success } from './routes'

/** The bounds of a body. */
export const adminLimits = { maxSize: 64 * 1024 }

/** Makes a route that changes what callers with `admin` make while the relay runs. The log tells who did. */
export function changeRoute(
  relay: Pick<Relay, 'standsBehind'>, method: Route['method'], path: string,
  action: (name: string, exchange: Exchange) => Promise<Success & { log: Text }>,
): Route {
  return route(method, path, ['admin'], async exchange => {
    // The active relay would notice the change only later.
    if (relay.standsBehind !== undefined) {
      throw new RelayError('standby', say('change-there'))
    }
    const answer = await action(exchange.params.name ?? '', exchange)
    return { ...answer, log: say('done-by', { what: answer.log, by: byCaller(exchange) }) }
  })
}

/**
 * `PUT` and `DELETE /<path>/<name>` of what is made while the relay runs.
 *
 * @param kind what an entry is, for the log
 * @param view an entry as its makers see it
 */
export function madeRoutes<T>(
  relay: Pick<Relay, 'standsBehind'>, path: string, kind: Text, entries: Pick<Made<T>, 'put' | 'remove'>, view: (listed: Listed<T>) => object,
): Route[] {
  return [
    changeRoute(relay, 'PUT', `/${path}/:name`, async (name, exchange) => {
      const { isNew, listed } = await entries.put(name, await readJson(exchange, adminLimits))
      return { status: isNew ? 201 : 200, data: view(listed), log: say(isNew ? 'entry-made' : 'entry-changed', { kind, name: JSON.stringify(name) }) }
    }),
    changeRoute(relay, 'DELETE', `/${path}/:name`, async name => {
      await entries.remove(name)
      return { data: { name }, log: say('entry-removed', { kind, name: JSON.stringify(name) }) }
    }),
  ]
}
