import type { GuardedRoute } from './routes'

/** `GET /metrics`: what was counted, as Prometheus reads it. */
export function metricsRoute(read: () => Promise<{ type: string, body: string }>): GuardedRoute {
  return {
    path: '/metrics',
    method: 'GET',
    allow: ['read'],
    quiet: true,
    async handle() {
      const { type, body } = await read()
      return { status: 200, type, body }
    },
  }
}
