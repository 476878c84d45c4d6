import type { Bot } from 'koishi'
import { extension, lookup } from 'mime-types'
import { readFile } from 'node:fs/promises'
import { nameOfUrl } from '../message/link'
import { SendError, type LoadedMedia } from './port'
import { clientOf } from './web'

/** The bytes of a picture, video, voice message or file, for an adapter that works in this process. */
export interface MediaFile {
  data: Buffer
  /** The name to show, with an extension where its type has one. */
  name: string
  /** Its media type, such as `image/png`. */
  type: string
}

/** How long a link may take, in milliseconds. */
const timeout = 20_000

/**
 * Reads the bytes of an item before the call that sends them: what cannot be had is refused, and nothing has left.
 *
 * @param most the most bytes that the platform takes
 * @throws SendError `refused`
 */
export async function readMedia(bot: Bot, { src, path, name }: LoadedMedia, most: number): Promise<MediaFile> {
  if (path !== undefined) {
    const data = await readFile(path).catch((cause: unknown) => {
      throw new SendError('refused', 'the file is not there any more', { isFinal: true, cause })
    })
    return described(data, name, lookup(name) || undefined, most)
  }
  const [head, mediaType] = /^data:([^;,]*)[^,]*,/i.exec(src) ?? []
  if (head !== undefined) return described(Buffer.from(src.slice(head.length), 'base64'), name, mediaType, most)
  const { data, mediaType: type } = await fetchLink(bot, src, most)
  return described(data, name || nameOfUrl(src), type, most)
}

/** How files of the usual types begin, where neither a name nor a server tells their type. */
const beginnings: readonly [type: string, bytes: RegExp][] = [
  ['image/png', /^\x89PNG/], ['image/jpeg', /^\xff\xd8\xff/], ['image/gif', /^GIF8/], ['image/webp', /^RIFF.{4}WEBP/s], ['application/pdf', /^%PDF/],
]

function described(data: Buffer, name: string, type: string | undefined, most: number): MediaFile {
  if (data.length > most) throw tooLarge(most)
  const start = data.toString('latin1', 0, 12)
  const known = type && type !== 'application/octet-stream'
    ? type
    : lookup(name) || beginnings.find(([, bytes]) => bytes.test(start))?.[0] || 'application/octet-stream'
  const ending = extension(known)
  return { data, name: /\.[^.]+$/.test(name) || ending === false || ending === 'bin' ? name || 'file' : `${name || 'file'}.${ending}`, type: known }
}

async function fetchLink(bot: Bot, url: string, most: number): Promise<{ data: Buffer, mediaType: string }> {
  try {
    const { data, status, headers } = await clientOf(bot.ctx)('GET', url, {
      timeout, validateStatus: () => true, responseType: async response => response.ok ? await readAtMost(response, most) : undefined,
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
