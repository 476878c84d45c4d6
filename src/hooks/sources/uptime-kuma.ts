import { RelayError } from '../../errors'
import { linkOf, objectOf, parsed, textOf } from '../fields'
import type { Source } from '../source'

/** The statuses of a heartbeat, by their numbers. */
const states = ['down', 'up', 'pending', 'maintenance']

/** The notification type "Webhook" of Uptime Kuma: JSON, form-data with the field `data`, or GET with JSON in its parameters. */
export const uptimeKuma: Source = {
  name: 'uptime-kuma',
  takesGet: true,
  read({ payload }) {
    const heartbeat = objectOf(parsed(payload.heartbeat))
    const monitor = objectOf(parsed(payload.monitor))
    const text = textOf(payload.msg)
    const state = typeof heartbeat.status === 'number' ? states[heartbeat.status] : undefined
    // A test, or a certificate that expires.
    if (state === undefined && text === undefined) throw new RelayError('bad-request', 'there is neither a heartbeat nor a msg')
    if (state === undefined) return { name: 'message', view: { text } }
    return {
      name: 'heartbeat',
      status: state,
      view: {
        state,
        text,
        monitor: textOf(monitor.name),
        reason: textOf(heartbeat.msg),
        ping: typeof heartbeat.ping === 'number' ? heartbeat.ping : undefined,
        time: timeOf(heartbeat.time),
        address: addressOf(monitor.url, monitor.hostname, monitor.port),
      },
    }
  },
}

/** In UTC, which it does not say. */
function timeOf(value: unknown): string | undefined {
  const text = textOf(value)
  return text !== undefined && /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?$/.test(text) ? `${text.replace(' ', 'T')}Z` : undefined
}

/** What is watched: an address without user and password, or a host. */
function addressOf(url: unknown, hostname: unknown, port: unknown): string | undefined {
  const link = linkOf(url)
  if (link !== undefined && URL.canParse(link)) {
    const { origin, pathname } = new URL(link)
    return origin + (pathname === '/' ? '' : pathname)
  }
  const host = textOf(hostname)
  return host === undefined || typeof port !== 'number' ? host : `${host}:${port}`
}
