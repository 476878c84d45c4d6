import type { Bot } from 'koishi'
import { extension, lookup } from 'mime-types'
import { readFile, stat } from 'node:fs/promises'
import { parseEndpoint } from '../lib/endpoint'
import { parseJson } from '../lib/json'
import { fieldsOf, isObject, type JsonObject } from '../lib/shape'
import { causes, type CauseId } from '../message/causes'
import { nameOfUrl } from '../message/link'
import { classifyThrown, cleanWording } from './failure'
import { SendError, type Limit, type LoadedMedia } from './port'

/*
 * Platforms with an HTTP API that the relay calls itself, through the HTTP client of the adapter and with its credentials: the adapters
 * lose what the platform answers.
 */

/** What is used of Koishi's HTTP client. */
type Client = <T>(method: string, url: string, config: {
  data?: object | undefined
  headers?: Record<string, string>
  /** In milliseconds; 0 for none. */
  timeout: number
  validateStatus: () => true
  responseType: (response: Response) => Promise<T>
}) => Promise<{ status: number, headers: Headers, data: T }>

/** The HTTP client of an adapter's bot, which knows the address and the credentials, or of a context. @throws SendError `unsent` */
function clientOf(owner: object): Client {
  const { http } = fieldsOf(owner)
  if (!isClient(http)) throw new SendError('unsent', 'the adapter is not ready')
  return http
}

function isClient(value: unknown): value is Client {
  return typeof value === 'function'
}

/** What a platform's API answered. */
export interface WebAnswer {
  status: number
  /** The whole body. */
  text: string
  /** JSON, parsed; `undefined` for anything else. */
  body: unknown
  headers: Headers
}

/**
 * Makes a request to the platform of a bot.
 *
 * @param path behind the address of the API
 * @param data sent as JSON, or as it is where it is a form
 * @throws SendError `unsent` where no connection was made, `unanswered` where there was no answer
 */
export async function ask(bot: Bot, method: string, path: string, data?: object): Promise<WebAnswer> {
  try {
    // The attempt has a time limit of its own, and an answer that comes later counts as well.
    const { status, headers, data: text } = await clientOf(bot)(method, path, {
      data, timeout: 0, validateStatus: () => true, responseType: response => response.text(),
    })
    return { status, headers, text, body: parseJson(text) }
  } catch (error) {
    throw classifyThrown(error)
  }
}

/** The wait that `Retry-After` names, in milliseconds: seconds, or a date (RFC 9110, section 10.2.3); `undefined` for none. */
export function retryAfterOf(headers: Headers): number | undefined {
  const given = headers.get('retry-after') ?? ''
  const wait = /^[\d.]+$/.test(given) ? Number(given) * 1000 : Date.parse(given) - Date.now()
  return wait > 0 ? wait : undefined
}

/** What an answer says of a failure. */
interface Complaint {
  /** The platform's own words. */
  words?: string | undefined
  causeId?: CauseId | undefined
  /** Whom a limit concerns, where the failure is one. */
  scope?: Limit['scope'] | undefined
  /** How long to wait because of a limit, in milliseconds. */
  wait?: number | undefined
}

/** The wait because of a limit where a platform names none, in milliseconds. */
const usualWait = 5_000

/**
 * The failure of a call with an answer: a server that failed may have carried it out; what a platform refuses, it would refuse again.
 *
 * @param status of HTTP, or what it would be where the platform tells failures by a code
 */
export function toFailure(status: number, { words = '', causeId, scope, wait }: Complaint): SendError {
  const shown = cleanWording(words) ?? `HTTP ${status}`
  if (scope) return new SendError('unsent', shown, { causeId: 'rate-limited', limit: { scope, after: wait ?? usualWait } })
  // A server that waited too long for the request may have read it all the same (RFC 9110, section 15.5.9).
  if (status >= 500 || status === 408) return new SendError('unanswered', shown)
  const isAccount = causeId !== undefined && causes[causeId].about === 'account'
  return isAccount ? new SendError('unsent', shown, { causeId }) : new SendError('refused', shown, { causeId, isFinal: true })
}

/** The failure of a call whose answer is no success and no failure: it may have been carried out. */
export function unreadable(): SendError {
  return new SendError('unanswered', 'the answer of the platform cannot be read')
}

/** The objects in a list. @throws SendError where there is no list */
export function readList(list: unknown): JsonObject[] {
  if (Array.isArray(list)) return list.filter(isObject)
  throw unreadable()
}

/** The most pages of a list that are read. */
const maxPages = 100

/**
 * All entries of a list that comes in pages.
 *
 * @param read gets a page by what the page before it calls the next one, an empty text for the first one
 * @throws SendError
 */
export async function readPages(read: (next: string) => Promise<{ list: unknown, next: string }>): Promise<JsonObject[]> {
  const all: JsonObject[] = []
  let next = ''
  for (let page = 0; page === 0 || (next !== '' && page < maxPages); page++) {
    const { list, next: following } = await read(next)
    all.push(...readList(list))
    next = following
  }
  return all
}

/** The form of a request that holds files: a field that is no text is JSON. */
export function toForm(fields: JsonObject, files: readonly (readonly [field: string, file: MediaFile])[]): FormData {
  const form = new FormData()
  for (const [field, value] of Object.entries(fields)) {
    if (value !== undefined) form.append(field, typeof value === 'string' ? value : JSON.stringify(value))
  }
  for (const [field, { data, name, type }] of files) form.append(field, new Blob([data], { type }), name)
  return form
}

/** The bytes of a picture, video, voice message or file, for an adapter that works in this process. */
export interface MediaFile {
  data: Buffer
  /** The name to show, with an extension where its type has one. */
  name: string
  /** Its media type, such as `image/png`. */
  type: string
}

/** How long a link may take, in milliseconds. */
const linkTime = 20_000

/**
 * Reads the bytes of an item before the call that sends them: what cannot be had is refused, and nothing has left.
 *
 * @param most the most bytes that the platform takes
 * @throws SendError `refused`
 */
export async function readMedia(bot: Bot, { src, path, name }: LoadedMedia, most: number): Promise<MediaFile> {
  if (path !== undefined) {
    const gone = (cause: unknown): never => {
      throw new SendError('refused', 'the file is not there any more', { isFinal: true, cause })
    }
    const { size } = await stat(path).catch(gone)
    if (size > most) throw tooLarge(most)
    return describe(await readFile(path).catch(gone), name, '', most)
  }
  const [head, mediaType = ''] = /^data:([^;,]*)[^,]*,/i.exec(src) ?? []
  if (head !== undefined) return describe(Buffer.from(src.slice(head.length), 'base64'), name, mediaType, most)
  const { data, mediaType: type } = await fetchLink(bot, src, most)
  return describe(data, name || nameOfUrl(src), type, most)
}

/** How files of the usual types begin, where neither a name nor a server tells their type. */
const beginnings: readonly [type: string, bytes: RegExp][] = [
  ['image/png', /^\x89PNG/], ['image/jpeg', /^\xff\xd8\xff/], ['image/gif', /^GIF8/], ['image/webp', /^RIFF.{4}WEBP/s], ['application/pdf', /^%PDF/],
]
const unknownType = 'application/octet-stream'

/** @param given the type that came with the data; empty for none */
function describe(data: Buffer, name: string, given: string, most: number): MediaFile {
  if (data.length > most) throw tooLarge(most)
  const start = data.toString('latin1', 0, 12)
  const [found = unknownType] = beginnings.find(([, bytes]) => bytes.test(start)) ?? []
  const type = (given === unknownType ? '' : given) || lookup(name) || found
  const ending = extension(type) || 'bin'
  // What ends otherwise, as `snapshot.cgi` does, is shown as a file.
  const isShown = /^(?:image|video|audio)\//.test(type)
  const hasEnding = ending === 'bin' || (isShown ? lookup(name) !== false : /\.[^.]+$/.test(name))
  return { data, name: hasEnding ? name || 'file' : `${name || 'file'}.${ending}`, type }
}

async function fetchLink(bot: Bot, url: string, most: number): Promise<{ data: Buffer, mediaType: string }> {
  try {
    const { url: address = url, authorization } = parseEndpoint(url) ?? {}
    const { data, status, headers } = await clientOf(bot.ctx)('GET', address, {
      ...authorization !== undefined && { headers: { authorization } },
      timeout: linkTime, validateStatus: () => true, responseType: async response => response.ok ? readAtMost(response, most) : undefined,
    })
    if (data === undefined) throw new SendError('refused', `HTTP ${status}`, { causeId: 'dead-link', isFinal: status >= 400 && status < 500 })
    return { data, mediaType: headers.get('content-type')?.replace(/;.*/, '').trim() ?? '' }
  } catch (error) {
    throw error instanceof SendError ? error : new SendError('refused', undefined, { causeId: 'dead-link', cause: error })
  }
}

async function readAtMost(response: Response, most: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  const body: AsyncIterable<Uint8Array> | null = response.body
  for await (const chunk of body ?? []) {
    size += chunk.length
    if (size > most) throw tooLarge(most)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function tooLarge(most: number): SendError {
  return new SendError('refused', `the platform takes files of at most ${Math.floor(most / 2 ** 20)} MB`, { isFinal: true })
}
