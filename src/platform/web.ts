import type { Bot } from 'koishi'
import { extension, lookup } from 'mime-types'
import { readFile, stat } from 'node:fs/promises'
import { parseEndpoint } from '../lib/endpoint'
import { parseJson } from '../lib/json'
import { readRetryAfter } from '../lib/retry-after'
import { fieldsOf, isObject, type JsonObject } from '../lib/shape'
import { causes, type CauseId } from '../message/causes'
import { nameOfUrl } from '../message/link'
import { classifyThrown, cleanWording, timeOut } from './failure'
import { SendError, type Limit, type LoadedMedia } from './port'
import { say } from '../texts/text'

/*
 * Platforms with an HTTP API that the relay calls itself, through the HTTP client and with the credentials of the adapter, because adapters
 * lose the answers of platforms.
 */

/** The used part of Koishi's HTTP client. */
type Client = <T>(method: string, url: string, config: {
  data?: object | undefined
  headers?: Record<string, string>
  /** In milliseconds; 0 for no limit. */
  timeout: number
  validateStatus: () => true
  responseType: (response: Response) => Promise<T>
}) => Promise<{ status: number, headers: Headers, data: T }>

/** The HTTP client of a bot, with its address and credentials, or of a context. @throws SendError `unsent` */
function clientOf(owner: object): Client {
  const { http } = fieldsOf(owner)
  if (!isClient(http)) throw new SendError('unsent', say('adapter-not-ready'))
  return http
}

function isClient(value: unknown): value is Client {
  return typeof value === 'function'
}

/** An answer of a platform's API. */
export interface WebAnswer {
  status: number
  /** The whole body. */
  text: string
  /** The parsed JSON; `undefined` for anything else. */
  body: unknown
  headers: Headers
}

/**
 * Makes a request to the platform of a bot.
 *
 * @param path relative to the address of the API
 * @param data sent as JSON; a form is sent as it is
 * @throws SendError `unsent` without a connection, `unanswered` without an answer
 */
export async function ask(bot: Bot, method: string, path: string, data?: object): Promise<WebAnswer> {
  try {
    // No time-out: the attempt has one of its own, and a later answer counts as well.
    const { status, headers, data: text } = await clientOf(bot)(method, path, {
      data, timeout: 0, validateStatus: () => true, responseType: response => response.text(),
    })
    return { status, headers, text, body: parseJson(text) }
  } catch (error) {
    throw classifyThrown(error)
  }
}

/** The wait of the header `Retry-After`, in milliseconds; `undefined` without one. */
export function retryAfterOf(headers: Headers): number | undefined {
  return readRetryAfter(headers.get('retry-after') ?? '')
}

/** The details of a failure in an answer. */
interface Complaint {
  /** The platform's own words. */
  words?: string | undefined
  causeId?: CauseId | undefined
  /** The scope of a rate limit, if the failure is one. */
  scope?: Limit['scope'] | undefined
  /** The length of a rate limit, in milliseconds. */
  wait?: number | undefined
}

/** The length of a rate limit for which the platform gives none, in milliseconds. */
const usualWait = 5_000

/**
 * The failure of a call with an answer. A server that failed may have carried out the call. A refusal is final.
 *
 * @param status of HTTP, or its equivalent if the platform reports failures by a code
 */
export function toFailure(status: number, { words = '', causeId, scope, wait }: Complaint): SendError {
  const shown = cleanWording(words) ?? `HTTP ${status}`
  if (scope) return new SendError('unsent', shown, { causeId: 'rate-limited', limit: { scope, after: wait ?? usualWait } })
  // 408: a server that timed out may have read the request (RFC 9110, section 15.5.9).
  if (status >= 500 || status === 408 || (!causeId && timeOut.test(words))) return new SendError('unanswered', shown)
  const isAccount = causeId !== undefined && causes[causeId] === 'account'
  return isAccount ? new SendError('unsent', shown, { causeId }) : new SendError('refused', shown, { causeId, isFinal: true })
}

/** The failure of a call whose answer is neither success nor failure: it may have been carried out. */
export function unreadable(): SendError {
  return new SendError('unanswered', say('unreadable-answer'))
}

/** The objects in a list. @throws SendError if the value is not a list */
export function readList(list: unknown): JsonObject[] {
  if (Array.isArray(list)) return list.filter(isObject)
  throw unreadable()
}

/** The most pages of a list to read. */
const maxPages = 100

/**
 * All entries of a paged list.
 *
 * @param read reads a page by the cursor in the page before; an empty text for the first page
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

/** The form of a request with files. Fields other than texts become JSON. */
export function toForm(fields: JsonObject, files: readonly (readonly [field: string, file: MediaFile])[]): FormData {
  const form = new FormData()
  for (const [field, value] of Object.entries(fields)) {
    if (value !== undefined) form.append(field, typeof value === 'string' ? value : JSON.stringify(value))
  }
  for (const [field, { data, name, type }] of files) form.append(field, new Blob([data], { type }), name)
  return form
}

/** The bytes of a picture, video, voice message or file. */
export interface MediaFile {
  data: Buffer
  /** The name to show, with an extension if the type has one. */
  name: string
  /** Its media type, such as `image/png`. */
  type: string
}

/** The time-out of a download, in milliseconds. */
const linkTime = 20_000

/**
 * Reads the bytes of an item before the call that sends them. If that fails, the message is refused and nothing has left.
 *
 * @param most the largest file that the platform accepts, in bytes
 * @throws SendError `refused`
 */
export async function readMedia(bot: Bot, { src, path, name }: LoadedMedia, most: number): Promise<MediaFile> {
  if (path !== undefined) {
    const missing = (cause: unknown): never => {
      throw new SendError('refused', say('file-gone'), { isFinal: true, cause })
    }
    const { size } = await stat(path).catch(missing)
    if (size > most) throw tooLarge(most)
    return describe(await readFile(path).catch(missing), name, '', most)
  }
  const [head, mediaType = ''] = /^data:([^;,]*)[^,]*,/i.exec(src) ?? []
  if (head !== undefined) return describe(Buffer.from(src.slice(head.length), 'base64'), name, mediaType, most)
  const { data, mediaType: type } = await fetchLink(bot, src, most)
  return describe(data, name || nameOfUrl(src), type, most)
}

/** The first twelve bytes of usual file types, for data without a name or type. */
const beginnings: readonly [type: string, bytes: RegExp][] = [
  ['image/png', /^\x89PNG/], ['image/jpeg', /^\xff\xd8\xff/], ['image/gif', /^GIF8/], ['image/webp', /^RIFF.{4}WEBP/s], ['image/bmp', /^BM.{4}\0{4}/s],
  ['image/avif', /^.{4}ftypavi/s], ['image/heic', /^.{4}ftyp(?:hei|mif)/s], ['audio/mp4', /^.{4}ftypM4A/s], ['video/mp4', /^.{4}ftyp/s],
  ['video/webm', /^\x1aE\xdf\xa3/], ['audio/mpeg', /^(?:ID3|\xff[\xf2\xf3\xfa\xfb])/], ['audio/ogg', /^OggS/], ['audio/wav', /^RIFF.{4}WAVE/s],
  ['audio/amr', /^#!AMR/], ['application/pdf', /^%PDF/], ['application/zip', /^PK\x03\x04/],
]
const unknownType = 'application/octet-stream'

/**
 * The media type of a file.
 *
 * @param data its content, or the beginning of it
 * @param given the type that came with the data; may be empty
 */
export function typeOf(data: Buffer, name: string, given: string): string {
  const start = data.toString('latin1', 0, 12)
  const [found = unknownType] = beginnings.find(([, bytes]) => bytes.test(start)) ?? []
  return (given === unknownType ? '' : given) || lookup(name) || found
}

/** @param given the type that came with the data; may be empty */
function describe(data: Buffer, name: string, given: string, most: number): MediaFile {
  if (data.length > most) throw tooLarge(most)
  const type = typeOf(data, name, given)
  const ending = extension(type) || 'bin'
  // With another extension, such as that of `snapshot.cgi`, it would be shown as a file.
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
  return new SendError('refused', say('file-too-large', { size: Math.floor(most / 2 ** 20) }), { isFinal: true })
}
