import { RelayError } from '../../errors'
import type { JsonObject } from '../../lib/shape'
import { isSwitch, markupOf } from '../declared'
import { headerText, textOf } from '../fields'
import { readerOf } from '../markup'
import { messageShape, pushShape } from '../shapes'
import { keyIn, type Source } from '../source'

/** The possible fields of the title and of the text; the first that is not empty counts. */
const titles = ['title', 'subject']
const texts = ['formatted_body', 'markdown', 'message', 'text', 'msg', 'content', 'body', 'html']
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
  read(request) {
    const { headers, payload, query } = request
    const places = [payload, Object.fromEntries(query)]
    const [described] = find([markdown], places)
    const [title = textOf(headerText(headers, 'x-title', 'title'))] = find(described === undefined ? titles : [...titles, 'text'], places)
    const [said = '', field = ''] = described === undefined ? find(texts, places) : [described, markdown]
    if (title === '' && said === '') {
      throw new RelayError('bad-request', 'there is no text: send it as message, text, msg, content or body; title is optional')
    }
    // The title that Uptime Kuma sends to PushDeer is a Markdown heading.
    return { name: 'message', view: { title: title.replace(/^#+ /, ''), text: readerOf(markupOf(request, field))(said) } }
  },
  keyOf: keyIn('idempotency-key'),
}

/** The source `message` for clients that expect a code of their service. */
export const push: Source = { ...message, name: 'push', shape: pushShape }

/** The first of these fields with a text, and its name. ntfy and Pushover have switches called `markdown` and `html`. */
function find(names: readonly string[], places: readonly JsonObject[]): [text?: string, name?: string] {
  const all = places.flatMap(place => names.map((name): [string, string] => [textOf(place[name]), name]))
  return all.find(([text, name]) => text !== '' && !((name === 'markdown' || name === 'html') && isSwitch(text))) ?? []
}
