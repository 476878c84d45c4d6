import { RelayError } from '../../errors'
import { address, firstOf, line, object, parsed } from '../fields'
import { readerOf } from '../markup'
import type { Source } from '../source'
import { say } from '../../texts/text'

/** The longest reason in a message, in UTF-16 units. */
const maxReason = 300

/** The statuses of a heartbeat, by number. */
const states = ['down', 'up', 'pending', 'maintenance']

/** The notification type "Webhook" of Uptime Kuma: JSON, form-data with the field `data`, or GET with JSON in its parameters. */
export const uptimeKuma: Source = {
  name: 'uptime-kuma',
  acceptsGet: true,
  read({ payload, format }) {
    const heartbeat = object(parsed(payload.heartbeat))
    const monitor = object(parsed(payload.monitor))
    const text = readerOf(format)(payload.msg)
    const state = typeof heartbeat.status === 'number' ? states[heartbeat.status] : undefined
    // Without a heartbeat it is a test, or an expiring certificate or domain.
    if (state === undefined && text === '') throw new RelayError('bad-request', say('no-heartbeat'))
    const reason = line(heartbeat.msg, maxReason)
    const id = line(monitor.id, 60)
    return {
      name: state === undefined ? 'message' : 'heartbeat',
      ...state !== undefined && { status: state },
      ...id !== '' && { thread: `monitor ${id}` },
      // A reminder of a monitor that is still down is no new start.
      ...state === 'down' && { begunAt: heartbeat.important === false ? '' : timeOf(heartbeat.time) },
      view: {
        state: state ?? '',
        text,
        // `pathName` includes the groups of the monitor: `Production / Database`.
        monitor: firstOf(monitor.pathName, monitor.name),
        // Uptime Kuma writes `N/A` for no reason.
        reason: reason === 'N/A' ? '' : reason,
        ping: typeof heartbeat.ping === 'number' ? heartbeat.ping : '',
        time: timeOf(heartbeat.time),
        // The start of the downtime, which newer versions send when the monitor is up again.
        since: state === 'up' ? timeOf(heartbeat.lastDownTime) : '',
        address: addressOf(monitor.url, monitor.hostname, monitor.port),
      },
    }
  },
}

/** A time as ISO text. Uptime Kuma sends UTC without saying so. */
function timeOf(value: unknown): string {
  const text = line(value)
  return /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?$/.test(text) ? `${text.replace(' ', 'T')}Z` : ''
}

/** The monitored address without user, password and query, or the host. */
function addressOf(url: unknown, hostname: unknown, port: unknown): string {
  const link = address(url)
  if (URL.canParse(link)) {
    const { origin, pathname } = new URL(link)
    return origin + (pathname === '/' ? '' : pathname)
  }
  const host = line(hostname)
  return host === '' || typeof port !== 'number' ? host : `${host}:${port}`
}
