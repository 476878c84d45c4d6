import type { IncomingHttpHeaders } from 'node:http'
import { RelayError } from '../../errors'
import type { JsonObject } from '../../lib/shape'
import { header, object, textOf } from '../fields'
import { fromMarkdown } from '../markup'
import { pushShape } from '../shapes'
import { keyIn, type Source } from '../source'

/** The fields that may hold the title, and those that may hold the text; the first that says something. */
const titles = ['title', 'subject']
const texts = ['message', 'text', 'msg', 'content', 'body']
/** The text of Server酱 and PushDeer, in Markdown; the latter calls its title `text`. */
const markdown = 'desp'

/**
 * A title and a text under whatever name: what Gotify's clients, Home Assistant, a NAS and many others send. What the body does not have
 * may stand in the query.
 */
export const message: Source = {
  name: 'message',
  takesGet: true,
  textFields: [...titles, ...texts, markdown],
  read({ headers, payload, query }) {
    const places = [payload, Object.fromEntries(query)]
    const described = find([markdown], places)
    const title = find(described === '' ? titles : [...titles, 'text'], places) || titleIn(headers)
    const said = described || find(texts, places)
    if (title === '' && said === '') {
      throw new RelayError('bad-request', 'there is no text: send it as message, text, msg, content or body; title is optional')
    }
    // Uptime Kuma's PushDeer has a heading for its title.
    return { name: 'message', view: { title: title.replace(/^#+ /, ''), text: described !== '' || isMarkdown(payload) ? fromMarkdown(said) : said } }
  },
  keyOf: keyIn('idempotency-key'),
}

/** The same for clients that look into the answer. */
export const push: Source = { ...message, name: 'push', shape: pushShape }

function find(names: readonly string[], places: readonly JsonObject[]): string {
  return places.flatMap(place => names.map(name => textOf(place[name]))).find(each => each !== '') ?? ''
}

/** The title as ntfy's clients send it, in UTF-8 or encoded as in RFC 2047. */
function titleIn(headers: IncomingHttpHeaders): string {
  const text = Buffer.from(header(headers, 'x-title', 'title'), 'latin1').toString()
  const encoded = /^=\?utf-8\?b\?([\w+/]+=*)\?=$/i.exec(text)?.[1]
  return textOf(encoded === undefined ? text : Buffer.from(encoded, 'base64').toString())
}

/** As Gotify's clients say it (`client::display` of its "message extras"). */
function isMarkdown({ extras }: JsonObject): boolean {
  return object(object(extras)['client::display']).contentType === 'text/markdown'
}
