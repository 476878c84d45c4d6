import { RelayError } from '../../errors'
import type { JsonObject } from '../../lib/shape'
import { object, textOf } from '../fields'
import { fromMarkdown } from '../markup'
import { keyIn, type Source } from '../source'

/** The fields that may hold the title, and those that may hold the text; the first that says something. */
const titles = ['title', 'subject']
const texts = ['message', 'text', 'msg', 'content', 'body']

/**
 * A title and a text under whatever name: what Gotify's clients, Home Assistant, a NAS and many others send. What the body does not have
 * may stand in the query.
 */
export const message: Source = {
  name: 'message',
  takesGet: true,
  textFields: [...titles, ...texts],
  read({ payload, query }) {
    const places = [payload, Object.fromEntries(query)]
    const title = find(titles, places)
    const said = find(texts, places)
    if (title === '' && said === '') {
      throw new RelayError('bad-request', 'there is no text: send it as message, text, msg, content or body; title is optional')
    }
    return { name: 'message', view: { title, text: isMarkdown(payload) ? fromMarkdown(said) : said } }
  },
  keyOf: keyIn('idempotency-key'),
}

function find(names: readonly string[], places: readonly JsonObject[]): string {
  return places.flatMap(place => names.map(name => textOf(place[name]))).find(each => each !== '') ?? ''
}

/** As Gotify's clients say it (`client::display` of its "message extras"). */
function isMarkdown({ extras }: JsonObject): boolean {
  return object(object(extras)['client::display']).contentType === 'text/markdown'
}
