import type { Route } from './routes'

/** `GET /healthz`: says that the service answers, to anyone (document, section 4). */
export const healthRoute: Route = {
  path: '/healthz',
  method: 'GET',
  open: true,
  quiet: true,
  handle: () => ({ data: { health: 'ok' } }),
}
