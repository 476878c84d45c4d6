import { RelayError } from '../../errors'
import type { JsonObject } from '../../message/parse'
import { objectsOf, pictureOf, textOf } from '../fields'
import type { Source } from '../source'

/** The notification service `json://` of Apprise. */
export const apprise: Source = {
  name: 'apprise',
  read({ payload }) {
    const title = textOf(payload.title)
    const text = textOf(payload.message)
    const attachments = objectsOf(payload.attachments).map(readAttachment)
    if (title === undefined && text === undefined && attachments.length === 0) throw new RelayError('bad-request', 'there is neither a title nor a message')
    const type = textOf(payload.type)
    return { name: 'notification', ...type !== undefined && { status: type }, view: { title, text, type, attachments } }
  },
}

function readAttachment({ filename, mimetype, base64 }: JsonObject): JsonObject {
  return { name: textOf(filename), picture: pictureOf(textOf(mimetype) ?? '', base64) }
}
