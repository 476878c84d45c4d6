import type { Route } from './routes'

/** `GET /status`: what goes on in the relay, for whoever has the key. Not logged, because monitoring asks all the time. */
export function statusRoute(read: () => Promise<object>): Route {
  return {
    path: '/status',
    method: 'GET',
    quiet: true,
    handle: async () => ({ data: await read() }),
  }
}
