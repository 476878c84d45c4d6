import { RelayError } from '../errors'
import type { BotSelector, Content, MediaItem, ParsedItem } from '../message/model'
import { maxItems, parseContent, parseSelector, printNames, ignoredFields } from '../message/parse'
import { parseFileName } from '../uploads/multipart'
import { receiveFile, receiveForm, type ReceivedPart, type ReceiveLimits } from '../uploads/receive'
import type { RequestFiles } from '../uploads/request-files'
import { demandUnread, readBody, readJson, refuseEncoding, type BodyLimits } from './body'
import { itemsOfText } from './long-text'
import { charsetOf, decodeText, kindOfName, kindOfType, kinds, mediaTypeOf, nameFor, type Kind } from './media-type'
import { readChoice, readExpiry, type Expiry } from './preferences'
import type { Exchange } from './routes'

/** How much a body may hold: as JSON or text, and as files. */
export interface SendLimits {
  text: BodyLimits
  files: ReceiveLimits
}

/** What a body asks for. */
export interface Wish {
  content: Content
  /** Which bot is to send; only JSON says so. */
  bot: BotSelector
  /** What of it has no meaning, fit for a line of the log. */
  ignored: readonly string[]
}

/**
 * Reads the body of `/send`, and stores what of it is to be sent as a file. Its Content-Type says what it is, unless its path has a name
 * for it, or the query a `type`.
 *
 * @param files where files are stored; after a failure, what it has is of no use
 * @param stop aborted when the relay is stopping
 * @throws RelayError `bad-request`, also for a body that is empty; `too-large`, `unsupported-type`, `too-slow`, `stopping`
 */
export async function readWish(exchange: Exchange, files: RequestFiles, limits: SendLimits, stop: AbortSignal): Promise<Wish> {
  const { query, params: { name }, request: { headers } } = exchange
  const asked = readChoice(query, 'type', kinds)
  const expiry = readExpiry(query)
  const contentType = headers['content-type'] ?? ''
  const mediaType = name === undefined ? mediaTypeOf(contentType) : ''
  if (mediaType === 'multipart/form-data') return readForm(exchange, asked, expiry, { files, limits, stop })
  if (mediaType === 'application/json' && asked === undefined) return readWebhook(exchange, expiry, limits.text, stop)
  const kind = asked ?? (name === undefined ? kindOfBody(mediaType) : kindOfName(name))
  const items = kind === 'text'
    ? await itemsOfText(await readText(exchange, contentType, limits.text, stop), files)
    : [await readFile(exchange, kind, nameOf(exchange, kind), { files, limits, stop })]
  return { content: { mode: items.length > 1 ? 'batch' : 'single', items, ...expiry }, bot: {}, ignored: [] }
}

/** What the reading of files needs. */
interface Means {
  files: RequestFiles
  limits: SendLimits
  stop: AbortSignal
}

/** What else can be done with bytes that are no text. */
const asFile = 'or send it as a file with ?type=file'

/** What curl says of `-d`, whatever that is, counts as text. */
function kindOfBody(mediaType: string): Kind {
  if (mediaType === '' || mediaType.startsWith('text/') || mediaType === 'application/x-www-form-urlencoded') return 'text'
  return kindOfType(mediaType) ?? 'file'
}

/** Reads what `/webhook` takes, but for the target. */
async function readWebhook(exchange: Exchange, expiry: Expiry, limits: BodyLimits, stop: AbortSignal): Promise<Wish> {
  const body = await readJson(exchange, limits, stop)
  return { content: { ...expiry, ...parseContent(body) }, bot: parseSelector(body), ignored: ignoredFields(body) }
}

async function readText(exchange: Exchange, contentType: string, limits: BodyLimits, stop: AbortSignal): Promise<string> {
  // Whoever has read it took it for UTF-8.
  if (typeof exchange.parsedBody === 'string' && charsetOf(contentType) === 'utf-8') return demandText(exchange.parsedBody)
  demandUnread(exchange)
  refuseEncoding(exchange.request)
  return demandText(decodeText(await readBody(exchange.request, limits, stop), contentType, asFile))
}

function demandText(text: string): string {
  if (!text.trim()) throw new RelayError('bad-request', 'there is nothing to send: the text is empty')
  return text
}

async function readFile(exchange: Exchange, type: MediaItem['type'], name: string, { files, limits, stop }: Means): Promise<MediaItem> {
  demandUnread(exchange)
  refuseEncoding(exchange.request)
  const id = await receiveFile(exchange.request, name, files.store, limits.files, stop)
  files.add([id])
  return { type, link: { kind: 'upload', id } }
}

function nameOf({ params, query, request: { headers } }: Exchange, kind: Kind): string {
  const given = params.name ?? parseFileName(headers['content-disposition'] ?? '')
  return given || query.get('filename') || nameFor(kind, headers['content-type'] ?? '')
}

/** The parts of a form that are text although they are no files. */
const textNames: readonly string[] = ['msg', 'text']

/** @param asked what the parts with a file name are to be, where the query says so */
async function readForm(exchange: Exchange, asked: Kind | undefined, expiry: Expiry, { files, limits, stop }: Means): Promise<Wish> {
  demandUnread(exchange)
  refuseEncoding(exchange.request)
  const isText = (name: string, isFile: boolean): boolean => isFile ? asked === 'text' : textNames.includes(name)
  const formLimits = { ...limits.files, isText, maxTextSize: limits.text.maxSize }
  const { parts, skipped } = await receiveForm(exchange.request, files.store, formLimits, stop)
  files.add(parts.flatMap(part => 'id' in part ? [part.id] : []))
  if (parts.length === 0) throw new RelayError('bad-request', 'there is nothing to send: no part is named msg or text, and none is a file')
  const items: ParsedItem[] = []
  for (const part of parts) {
    items.push(...await itemsOfPart(part, asked, files))
    if (items.length > maxItems) throw tooManyItems()
  }
  const [first] = items
  if (first instanceof RelayError && items.every(item => item instanceof RelayError)) throw first
  return { content: { mode: 'batch', items, ...expiry }, bot: {}, ignored: printNames(skipped) }
}

function tooManyItems(): RelayError {
  return new RelayError('bad-request', `a form may become at most ${maxItems} items: a long text is two of them, its first lines and a file`)
}

/** A text that is wrong stands as its error, as in a batch of `/webhook`. */
async function itemsOfPart(part: ReceivedPart, asked: Kind | undefined, files: RequestFiles): Promise<ParsedItem[]> {
  if ('text' in part) {
    try {
      return await itemsOfText(demandText(decodeText(part.text, part.type, asFile)), files)
    } catch (error) {
      if (error instanceof RelayError) return [error]
      throw error
    }
  }
  const { id } = part
  const type = asked === 'image' || asked === 'video' || asked === 'file' ? asked : kindOfType(part.type) ?? kindOfName(id)
  return [{ type, link: { kind: 'upload', id } }]
}
