import { RelayError } from '../../errors'
import type { JsonObject } from '../../lib/shape'
import { line, objects, pictureOf, textOf } from '../fields'
import type { Source } from '../source'

/** The notification service `json://` of Apprise. */
export const apprise: Source = {
  name: 'apprise',
  takesTail: true,
  read({ payload }) {
    const title = textOf(payload.title)
    const text = textOf(payload.message)
    const attachments = objects(payload.attachments).map(readAttachment)
    if (title === '' && text === '' && attachments.length === 0) throw new RelayError('bad-request', 'there is neither a title nor a message')
    const type = line(payload.type, 40)
    return { name: 'notification', ...type !== '' && { status: type }, view: { title, text, type, attachments } }
  },
}

function readAttachment({ filename, mimetype, base64 }: JsonObject): JsonObject {
  return { name: line(filename), picture: pictureOf(line(mimetype), base64) }
}
