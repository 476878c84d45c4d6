import { RelayError } from '../../errors'
import type { JsonObject } from '../../lib/shape'
import { cardFields, cardsOf } from '../cards'
import { isSwitch, markupOf } from '../declared'
import { joinLines, line, objects, pictureOf, textOf } from '../fields'
import { readerOf } from '../markup'
import { severityIn, unlessMarked } from '../marks'
import { renderPlainly } from '../plain'
import { fieldsOfHeaders, linksOf, objectOf, othersOf, severityOf, wordsOf } from '../push'
import { messageShape, pushShape } from '../shapes'
import { keyIn, type HookEvent, type HookRequest, type Source } from '../source'
import { say } from '../../texts/text'

/** The possible fields of the title and of the text; the first that is not empty counts. */
const titles = ['title', 'subject', 'summary']
const texts = ['formatted_body', 'markdown', 'message', 'text', 'msg', 'content', 'body', 'caption', 'description', 'summary', 'html']
/** The text field of Server酱 and PushDeer, in Markdown. PushDeer's title is in `text`. */
const markdown = 'desp'
/** The most lines of other fields below a text. */
const maxOthers = 8

/**
 * A title and a text under any usual name, as Gotify's clients, Home Assistant, NAS devices and many others send them. Fields that the body
 * does not have may be in the query, or in the headers of ntfy. Without a text, the message is the list of the fields.
 */
export const message: Source = {
  name: 'message',
  acceptsGet: true,
  takesTail: true,
  keyHeader: 'x-gotify-key',
  textFields: [...titles, ...texts, markdown],
  shape: messageShape,
  read: request => readMessage(request),
  keyOf: keyIn('idempotency-key'),
}

/** The source `message` for clients that expect a code of their service. */
export const push: Source = {
  ...message,
  name: 'push',
  shape: pushShape,
  read(request) {
    const { view, ...event } = readMessage(request)
    // Such clients put whatever is to be seen into the text, and users, devices and sounds beside it.
    return { ...event, view: { ...view, fields: view.text === '' ? view.fields : '' } }
  },
}

/**
 * Reads a message.
 *
 * @param given its severity, if the source has a field of its own for it
 * @throws RelayError `bad-request` for a payload without any field
 */
export function readMessage(request: HookRequest, given?: string): HookEvent {
  const { headers, payload, query } = request
  const own = fieldsOfHeaders(headers)
  const body = withSmallNames(payload)
  const parameters = withSmallNames(Object.fromEntries(query))
  const places = [body, parameters, own]
  const fields: JsonObject = { ...own, ...parameters, ...body }
  const used = new Set<string>()
  /** The first of these fields with a text, and its name. ntfy and Pushover have switches called `markdown` and `html`. */
  const take = (names: readonly string[]): [text: string, name: string] => {
    const all = places.flatMap(place => names.map((name): [string, string] => [used.has(name) ? '' : textOf(place[name]), name]))
    const found = all.find(([text, name]) => text !== '' && !((name === 'markdown' || name === 'html') && isSwitch(text))) ?? ['', '']
    used.add(found[1])
    return found
  }
  const [described] = take([markdown])
  const about = objectOf(fields)
  // The title that Uptime Kuma sends to PushDeer is a Markdown heading.
  const heading = take(described === '' ? titles : [...titles, 'text'])[0].replace(/^#+ /, '') || about
  const cards = cardsOf(fields)
  // Teams needs a summary for its notifications, which the card has, too.
  const title = cards.includes(heading) ? '' : heading
  const [said, place] = described === '' ? take(texts) : [described, markdown]
  // With a text in Markdown or HTML, Bark and Matrix have a plain one as well.
  if (place === 'markdown' || place === 'formatted_body') used.add('body')
  // The body of a request to ntfy with a message in a header is an attachment.
  const whole = joinLines(own.message === said ? '' : textOf(own.message), said)
  const text = joinLines(readerOf(markupOf(request, fields, place))(whole), cards)
  if (cards !== '') for (const name of [...cardFields, 'fallbacktext', 'summary', 'themecolor', 'type', '@type', '@context']) used.add(name)
  const [subtitle] = take(['subtitle'])
  const attachments = objects(payload.attachments).map(readAttachment).filter(({ name, picture }) => joinLines(name, picture) !== '')
  if (joinLines(title, subtitle, text) === '' && attachments.length === 0) {
    // A client that sends an empty text has nothing to say but what is neither for its service nor empty.
    const list = renderPlainly(texts.some(name => name in body) ? othersOf(payload, used, '') : payload)
    if (list === '') throw new RelayError('bad-request', say('no-text-field'))
    return { name: 'message', view: { mark: '', title, subtitle, text, fields: list, links: [], attachments } }
  }
  if (about !== '' && title === about) for (const name of ['involvedobject', 'regarding', 'reason']) used.add(name)
  const [field, found, severity = severityIn(title, text)] = severityOf(given === undefined ? fields : { severity: given }, own)
  const mark = unlessMarked(found, title, subtitle, text)
  if (mark === found) used.add(field)
  // Beside its type, Apprise has the version of its payload. In a query, `user` belongs to a password.
  if (field === 'type') used.add('version')
  if (query.has('user')) used.add('user')
  const links = linksOf(fields)
  for (const [name] of links) used.add(name)
  return {
    name: 'message',
    ...severity && { severity },
    view: {
      mark, title, subtitle, text,
      fields: renderPlainly({ ...othersOf(payload, used, joinLines(title, text)), tags: wordsOf(fields.tags) }, maxOthers),
      links: links.map(([, link]) => link).filter(link => !text.includes(link)),
      attachments,
    },
  }
}

/** A payload with names in small letters: programs in C# and Go capitalize them. */
function withSmallNames(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name.toLowerCase(), value]))
}

/** An attachment of Apprise: a picture, or the name of another file. */
function readAttachment({ filename, mimetype, base64 }: JsonObject): { name: string, picture: string } {
  return { name: line(filename), picture: pictureOf(line(mimetype), base64) }
}
