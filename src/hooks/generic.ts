import type { JsonObject } from '../lib/shape'
import { firstOf } from './fields'
import { keyIn, started, type HookEvent, type Source } from './source'
import { message, readMessage } from './sources/message'

/** The source that belongs to a template of the operator: the template gets the payload as it is. */
export function ownSource(name: string): Source {
  return { name, read: ({ payload, format }) => ({ ...labelsOf(payload, name), view: payload, format }), keyOf: keyIn('idempotency-key', 'webhook-id') }
}

/** The source of a name that nobody has described: it is read like `message`. */
export function genericSource(name: string): Source {
  const { name: like, textFields } = message
  return { ...ownSource(name), like, textFields, read: request => ({ ...readMessage(request), ...labelsOf(request.payload, name) }) }
}

/** The values for `?events=` and `?status=`, from the usual fields. */
function labelsOf(payload: JsonObject, name: string): Pick<HookEvent, 'name' | 'status'> {
  const status = firstOf(payload.status, payload.state, payload.result, payload.severity, payload.level)
  return {
    name: firstOf(payload.event, payload.eventType, payload.event_type, payload.event_name, payload.type, payload.action) || name,
    // Only the sources that know what a start is leave it out.
    ...status !== '' && status !== started && { status },
  }
}
