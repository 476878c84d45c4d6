import { isUtf8 } from 'node:buffer'
import { RelayError } from '../errors'
import { say, type Text } from '../texts/text'
import { decode, unescapeBytes } from '../lib/bytes'
import { parseDestinations } from '../message/target'
import type { BotSelector, Content, ParsedItem, TargetNames } from '../message/model'
import { ignoredFields, parseContent, parseSelector, printNames, tellFound } from '../message/parse'
import { parseFileName } from '../uploads/multipart'
import { receiveFile, receiveForm, type ReceivedPart, type ReceiveLimits } from '../uploads/receive'
import type { UploadStore } from '../uploads/store'
import { decodeAddress, demandUnread, readBody, readJson, type BodyLimits } from './body'
import { charsetOf, decodeText, kindOfName, kindOfType, kinds, mediaTypeOf, nameFor, type Kind } from './media-type'
import { parseHandling, readChoice, readTiming, timingFields } from './preferences'
import { route, type Exchange, type Route, type Success } from './routes'
import type { Sender } from './sender'

/** The parts of the relay that `/send` needs. */
export interface SendOptions {
  sender: Sender
  uploads: UploadStore
  /** The names of targets, for the path. */
  names: TargetNames
  limits: SendLimits
}

/**
 * `POST` and `PUT /send/<target>[,<target>…]`, and `PUT` with `/<file name>` appended: sends a body as it is, for callers that do not
 * write JSON.
 */
export function sendRoutes(options: SendOptions): Route[] {
  const handle: Route['handle'] = exchange => send(exchange, options)
  // Matches an address that ends early, too, which gets a helpful error.
  const to = (method: 'POST' | 'PUT'): Route => ({ ...route(method, '/send/:targets', ['send'], handle), pattern: '/send(/+|$):targets([^/]*)' })
  return [to('POST'), to('PUT'), route('PUT', '/send/:targets/:name', ['send'], handle)]
}

async function send(exchange: Exchange, options: SendOptions): Promise<Success> {
  const { sender, uploads, names } = options
  const { params: { targets }, query, request } = exchange
  if (!targets) throw new RelayError('no-such-target', say('send-without-target'))
  // Refuses what it can before it reads the body.
  sender.demandTargets(exchange, parseDestinations(targets, {}, names), false)
  const handling = parseHandling(request.headers, query)
  /** The stored files that no delivery owns yet. */
  const files: string[] = []
  try {
    const { content, bot, ignored, hint } = await parseBody(exchange, files, options)
    const destinations = parseDestinations(targets, bot, names)
    const order = { door: 'send', content, destinations, ignored, hint, onDelivery: () => files.splice(0), ...handling }
    sender.admit(exchange, order)
    return await sender.send(exchange, order)
  } finally {
    for (const id of files) await uploads.remove(id)
  }
}

/** The bounds of a body: as JSON or text, and as files. */
interface SendLimits {
  text: BodyLimits
  files: ReceiveLimits
}

/** The message that a body describes. */
interface ParsedBody {
  content: Content
  /** The bot that sends; only JSON can name one. */
  bot: BotSelector
  /** The fields without a meaning, safe for a log line. */
  ignored: readonly string[]
  /** What the caller may have meant instead, for the answer. */
  hint?: Text | undefined
}

/** The advice to the caller about bytes that are not text. */
const asFile = say('as-file')

/** The advice about a file without its name: `curl -T` appends the name to an address that ends with a slash. */
const withSlash = say('with-slash')

/** The parts of a form that are read as text without being files. */
const textNames: readonly string[] = ['msg', 'text', ...timingFields]

/**
 * Reads the body of `/send`, and stores its files. The Content-Type tells its kind, unless the path has a file name, or the query
 * a `type`.
 *
 * @param files receives the IDs of the files
 * @throws RelayError `bad-request`, also for an empty body; `too-large`, `unsupported-type`, `too-slow`, `stopping`
 */
async function parseBody(exchange: Exchange, files: string[], { uploads, limits }: SendOptions): Promise<ParsedBody> {
  const { query, stop, request, request: { headers } } = exchange
  const name = nameIn(exchange)
  const asked = readChoice(query, 'type', kinds)
  const timing = readTiming(query)
  const contentType = headers['content-type'] ?? ''
  const mediaType = name === undefined ? mediaTypeOf(contentType) : ''
  if (mediaType === 'application/json' && asked === undefined) {
    const body = await readJson(exchange, limits.text, { allowsControls: true })
    return { content: { ...timing, ...parseContent(body) }, bot: parseSelector(body), ignored: ignoredFields(body) }
  }
  if (mediaType === 'multipart/form-data') {
    demandUnread(exchange)
    const isText = (field: string, isFile: boolean): boolean => isFile ? asked === 'text' : textNames.includes(field)
    const formLimits = { ...limits.files, isText, maxTextSize: limits.text.maxSize }
    const { parts: received, skipped } = await receiveForm(request, uploads, formLimits, stop)
    for (const part of received) if ('id' in part && part.isBlank) await uploads.remove(part.id)
    const parts = received.filter(part => !('id' in part && part.isBlank))
    files.push(...parts.flatMap(part => 'id' in part ? part.id : []))
    const isTiming = (part: ReceivedPart): part is Extract<ReceivedPart, { name: string }> => 'name' in part && timingFields.includes(part.name)
    const timings = Object.fromEntries(parts.filter(isTiming).map(part => [part.name, decodeText(part.text, part.type, asFile).trim()]))
    const items = itemsOfForm(parts.filter(part => !isTiming(part)), asked, printNames(skipped))
    return { content: { mode: 'batch', items, longText: 'file', ...timing, ...readTiming(new URLSearchParams(timings)) }, bot: {}, ignored: printNames(skipped) }
  }
  const kind = asked ?? (name === undefined ? kindOfBody(mediaType) : kindOfName(name))
  if (kind === 'text') {
    const isPut = exchange.request.method === 'PUT' && asked === undefined
    const text = await readText(exchange, contentType, { ...limits.text, ...isPut && { advice: withSlash } }, isPut ? say('or-with-slash') : asFile)
    // `curl -T -` sends a standard input, whose length is unknown.
    const hint = isPut && 'content-length' in headers ? say('sent-as-text') : asked === undefined ? hintFor(text) : undefined
    return { content: { mode: 'single', items: [{ type: 'text', text }], longText: 'file', ...timing }, bot: {}, ignored: [], hint }
  }
  demandUnread(exchange)
  const given = name ?? parseFileName(headers['content-disposition'] ?? '')
  const id = await receiveFile(request, given || query.get('filename') || nameFor(kind, contentType), uploads, limits.files, stop)
  files.push(id)
  return { content: { mode: 'single', items: [{ type: kind, link: { kind: 'upload', id } }], ...timing }, bot: {}, ignored: [] }
}

/** The file name in the path. The router leaves it as it is if its escapes are not UTF-8, as curl -T writes them on Windows. */
function nameIn({ params: { name }, request, query }: Exchange): string | undefined {
  const bytes = unescapeBytes(Buffer.from(name ?? ''))
  return isUtf8(bytes) ? name : decodeAddress(request, query.toString(), charset => decode(bytes, charset))
}

/** Counts `application/x-www-form-urlencoded` as text: curl sends any `-d` with it. */
function kindOfBody(mediaType: string): Kind {
  if (mediaType === '' || mediaType.startsWith('text/') || mediaType === 'application/x-www-form-urlencoded') return 'text'
  return kindOfType(mediaType) ?? 'file'
}

/** curl sends any `-d` as a form, also JSON. */
function hintFor(text: string): Text | undefined {
  const isObject = /^\s*\{\s*"/.test(text) && text.trimEnd().endsWith('}')
  return isObject ? say('json-sent-as-text') : undefined
}

async function readText(exchange: Exchange, contentType: string, limits: BodyLimits, advice: Text): Promise<string> {
  // If another plugin has read the body, it decoded it as UTF-8.
  if (charsetOf(contentType) !== 'utf-8') demandUnread(exchange)
  return demandText(decodeText(await readBody(exchange, limits), contentType, advice))
}

function demandText(text: string): string {
  if (!text.trim()) throw new RelayError('bad-request', say('empty-text'))
  return text
}

/**
 * @param asked the kind of the parts with a file name, if the query gives one
 * @param skipped the names of the other parts
 */
function itemsOfForm(parts: readonly ReceivedPart[], asked: Kind | undefined, skipped: readonly string[]): ParsedItem[] {
  if (parts.length === 0) throw new RelayError('bad-request', tellFound(say('empty-form'), skipped))
  // Some programs send the field of the text even if it is empty.
  const full = parts.filter(part => !('text' in part) || part.text.length > 0)
  const items = (full.length > 0 ? full : parts).map(part => itemOfPart(part, asked))
  const [first] = items
  if (first instanceof RelayError && items.every(item => item instanceof RelayError)) throw first
  return items
}

/** A malformed text becomes its error, as in a batch of `/webhook`. */
function itemOfPart(part: ReceivedPart, asked: Kind | undefined): ParsedItem {
  if ('text' in part) {
    try {
      return { type: 'text', text: demandText(decodeText(part.text, part.type, asFile)) }
    } catch (error) {
      if (error instanceof RelayError) return error
      throw error
    }
  }
  const { id } = part
  const type = asked === undefined || asked === 'text' ? kindOfType(part.type) ?? kindOfName(id) : asked
  return { type, link: { kind: 'upload', id } }
}
