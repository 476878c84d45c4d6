import { RelayError } from '../../errors'
import { header, textOf } from '../fields'
import type { Source } from '../source'

/** The fields that may hold the text, the first that says something. */
const texts = ['message', 'text', 'msg', 'content', 'body']

/** A title and a text under whatever name: what Gotify's clients, Home Assistant, a NAS and many others send. */
export const message: Source = {
  name: 'message',
  takesGet: true,
  takesText: true,
  read({ payload }) {
    const title = textOf(payload.title) || textOf(payload.subject)
    const text = texts.map(name => textOf(payload[name])).find(each => each !== '') ?? ''
    if (title === '' && text === '') {
      throw new RelayError('bad-request', 'there is no text: give it as message, text, msg, content or body, with a title or not')
    }
    return { name: 'message', view: { title, text } }
  },
  keyOf({ headers }) {
    const text = header(headers, 'idempotency-key').trim()
    return text === '' ? undefined : { text }
  },
}
