import { line } from '../fields'
import type { Source } from '../source'
import { readMessage } from './message'

/** The notification service `json://` of Apprise: a message with a type. */
export const apprise: Source = {
  name: 'apprise',
  takesTail: true,
  read(request) {
    const status = line(request.payload.type, 40)
    // The version is that of Apprise's payload.
    const payload = { ...request.payload, type: '', version: '' }
    return { ...readMessage({ ...request, payload }, status), name: 'notification', ...status !== '' && { status } }
  },
}
