import { unwrap } from '../../lib/unwrap'
import { fieldsOf, type JsonObject } from '../../message/parse'
import { readMessage } from '../../message/segments'
import { toMention, toText, type IncomingSupport } from '../incoming'

/** How messages from OneBot 11 are read. */
export const incomingOneBot: IncomingSupport = {
  readText: session => messageText(eventOf(session)),
  // OneBot reports so what another device of the account sent.
  isOwn: session => eventOf(session).post_type === 'message_sent',
}

/** The event that the adapter made a session of, without fields when the session is of another platform. */
export function eventOf(session: object): JsonObject {
  return fieldsOf(Reflect.get(unwrap(session), 'onebot'))
}

/**
 * The text of a OneBot message as the member typed it, with mentions as `@<id>`. It is read from the event and not from the elements of the
 * adapter, which inserts blanks next to pictures.
 *
 * @param event its `message` is an array of segments or a string with CQ codes
 * @returns `undefined` when the event has no such `message`
 */
export function messageText(event: unknown): string | undefined {
  return readMessage(fieldsOf(event).message)?.map(({ type, data }) => {
    if (type === 'text') return toText(data.text)
    return type === 'at' ? toMention(data.qq) : ''
  }).join('')
}
