import { RelayError } from '../../errors'
import { firstText } from '../fields'
import type { Source } from '../source'

/** A title and a text under whatever name: what Gotify's clients, Home Assistant, a NAS and many others send. */
export const message: Source = {
  name: 'message',
  takesGet: true,
  takesText: true,
  read({ payload }) {
    const title = firstText(payload.title, payload.subject)
    const text = firstText(payload.message, payload.text, payload.msg, payload.content, payload.body)
    if (title === undefined && text === undefined) {
      throw new RelayError('bad-request', 'there is no text: give it as message, text, msg, content or body, with a title or not')
    }
    return { name: 'message', view: { title, text } }
  },
  keyOf({ headers: { 'idempotency-key': key } }) {
    return typeof key === 'string' && key.trim() !== '' ? { text: key.trim() } : undefined
  },
}
