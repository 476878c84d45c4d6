import { unwrap } from '../../lib/unwrap'
import { isObject } from '../../message/parse'
import { readMessage } from '../../message/segments'
import { toMention, toText, type IncomingSupport } from '../incoming'

/** How messages are read that came from OneBot 11. */
export const incomingOneBot: IncomingSupport = {
  readText: session => messageText(eventOf(session)),
  isOwn(session) {
    const event = eventOf(session)
    // This is how OneBot reports what another device of the account sent.
    return isObject(event) && event.post_type === 'message_sent'
  },
}

function eventOf(session: object): unknown {
  return Reflect.get(unwrap(session), 'onebot')
}

/**
 * The text of a OneBot message as its member typed it, with mentions as `@<id>`. It is read from the event and not from the
 * adapter's elements, because the adapter inserts blanks next to pictures.
 *
 * @param event what the platform sent; its `message` is an array of segments or a string with CQ codes
 * @returns `undefined` when it holds neither: it is no OneBot message
 */
export function messageText(event: unknown): string | undefined {
  if (!isObject(event)) return
  return readMessage(event.message)?.map(({ type, data }) => {
    if (type === 'text') return toText(data.text)
    return type === 'at' ? toMention(data.qq) : ''
  }).join('')
}
