import type { IncomingHttpHeaders } from 'node:http'
import { RelayError } from '../../errors'
import type { JsonObject } from '../../lib/shape'
import { header, object, textOf } from '../fields'
import { fromMarkdown } from '../markup'
import { messageShape, pushShape } from '../shapes'
import { keyIn, type Source } from '../source'

/** The possible fields of the title and of the text; the first that is not empty counts. */
const titles = ['title', 'subject']
const texts = ['message', 'text', 'msg', 'content', 'body']
/** The text field of Server酱 and PushDeer, in Markdown. PushDeer's title is in `text`. */
const markdown = 'desp'

/**
 * A title and a text under any usual name, as Gotify's clients, Home Assistant, NAS devices and many others send them. Fields that the body
 * does not have may be in the query.
 */
export const message: Source = {
  name: 'message',
  acceptsGet: true,
  takesTail: true,
  keyHeader: 'x-gotify-key',
  textFields: [...titles, ...texts, markdown],
  shape: messageShape,
  read({ headers, payload, query }) {
    const places = [payload, Object.fromEntries(query)]
    const described = find([markdown], places)
    const title = find(described === '' ? titles : [...titles, 'text'], places) || titleIn(headers)
    const said = described || find(texts, places)
    if (title === '' && said === '') {
      throw new RelayError('bad-request', 'there is no text: send it as message, text, msg, content or body; title is optional')
    }
    // The title that Uptime Kuma sends to PushDeer is a Markdown heading.
    return { name: 'message', view: { title: title.replace(/^#+ /, ''), text: described !== '' || isMarkdown(payload) ? fromMarkdown(said) : said } }
  },
  keyOf: keyIn('idempotency-key'),
}

/** The source `message` for clients that expect a code of their service. */
export const push: Source = { ...message, name: 'push', shape: pushShape }

function find(names: readonly string[], places: readonly JsonObject[]): string {
  return places.flatMap(place => names.map(name => textOf(place[name]))).find(each => each !== '') ?? ''
}

/** The title in a header, as sent by ntfy's clients: in UTF-8, or encoded by RFC 2047. */
function titleIn(headers: IncomingHttpHeaders): string {
  const text = Buffer.from(header(headers, 'x-title', 'title'), 'latin1').toString()
  const encoded = /^=\?utf-8\?b\?([\w+/]+=*)\?=$/i.exec(text)?.[1]
  return textOf(encoded === undefined ? text : Buffer.from(encoded, 'base64').toString())
}

/** Whether the text is Markdown, by the "message extras" of Gotify (`client::display`). */
function isMarkdown({ extras }: JsonObject): boolean {
  return object(object(extras)['client::display']).contentType === 'text/markdown'
}
