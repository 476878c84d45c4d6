import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { RelayError } from '../errors'
import { nameOfUrl } from '../message/link'
import type { Item, MediaItem, MentionItem, MessageRequest, ParsedItem, ReplyItem, TextItem } from '../message/model'
import { writeItems } from '../message/parse'
import type { Account, LoadedMedia } from '../platform/port'
import { fitTexts, longestText } from './long-text'
import type { MediaOptions, RelayOptions, StoredFile } from './options'

/** What the rules of composing look at. */
interface Composable {
  type: 'text' | 'image' | 'file' | 'video' | 'audio' | 'at' | 'reply'
  /** How many bytes of data the item adds to the platform message that holds it. */
  weight: number
  text?: string
}

/**
 * Groups the items of a request into platform messages: text and images in their order share messages, a video or a voice message stands
 * alone, and every file follows as a message of its own. A mention or a reply goes with the next text or image, and the reply stands
 * first in its message; with none to come, mentions end the last one. A message that would be too heavy or too long is
 * divided.
 */
export function compose<T extends Composable>(items: readonly T[], account: Pick<Account, 'longestText'>): T[][] {
  const maxLength = longestText(account)
  const messages: T[][] = []
  let mixed: T[] = []
  let weight = 0
  let length = 0
  /** What goes with the item to come. */
  let ahead: T[] = []

  /** A reply stands first in its message. */
  function attach(): void {
    if (ahead.length === 0) return
    mixed.unshift(...ahead.filter(isReply))
    mixed.push(...ahead.filter(each => !isReply(each)))
    ahead = []
  }

  function close(): void {
    if (mixed.length > 0) messages.push(mixed)
    mixed = []
    weight = 0
    length = 0
  }

  for (const item of items) {
    switch (item.type) {
      case 'file':
        break
      case 'at':
      case 'reply':
        ahead.push(item)
        break
      case 'video':
      case 'audio':
        close()
        messages.push([item])
        break
      default: {
        const added = item.text?.length ?? 0
        const isFull = weight + item.weight > maxWeight || (added > 0 && length + added > maxLength)
        // A message answers one other message.
        if (isFull || (ahead.some(isReply) && mixed.some(isReply))) close()
        attach()
        mixed.push(item)
        weight += item.weight
        length += added
      }
    }
  }
  attach()
  close()
  return [...messages, ...items.filter(item => item.type === 'file').map(item => [item])]
}

/** Divides a platform message into the least that can be sent: each item with the mentions and the reply that go with it. */
export function divide<T extends Composable>(message: readonly T[]): T[][] {
  const parts: T[][] = []
  let ahead: T[] = []
  for (const item of message) {
    ahead.push(item)
    if (item.type === 'at' || item.type === 'reply') continue
    parts.push(ahead)
    ahead = []
  }
  const last = parts.pop() ?? []
  return [...parts, [...last, ...ahead]]
}

function isReply({ type }: Composable): boolean {
  return type === 'reply'
}

/** What a platform message is: `mixed` has pictures or mentions; `heavy` is a video or a voice message, which takes a while. */
export type MessageKind = 'text' | 'mixed' | 'heavy' | 'file'

export function kindOf(items: readonly Pick<Composable, 'type'>[]): MessageKind {
  const has = (...types: Composable['type'][]): boolean => items.some(({ type }) => types.includes(type))
  return has('file') ? 'file' : has('video', 'audio') ? 'heavy' : has('image', 'at', 'reply') ? 'mixed' : 'text'
}

/** Whether a message may come a second time where nobody can tell whether it arrived. */
export function isRepeatable(kind: MessageKind): boolean {
  return kind === 'text' || kind === 'mixed'
}

/** How fast a platform is taken to carry out what it got, in bytes a millisecond: NapCat itself reckons with 256 KiB a second. */
const bytesPerMs = 256 * 1024 / 1000
/** The settling time of anything with a file, a video, a voice message or a link of unknown size, in milliseconds. */
const longestSettling = 10 * 60_000

/** For how long a call with these items may still be carried out when it got no clear answer, in milliseconds. */
export function settlingTime(items: readonly Pick<PreparedItem, 'type' | 'bytes'>[], least: number): number {
  const longest = Math.max(longestSettling, least)
  const isLong = !isRepeatable(kindOf(items)) || items.some(({ bytes }) => bytes === undefined)
  return isLong ? longest : Math.min(least + items.reduce((sum, { bytes = 0 }) => sum + bytes, 0) / bytesPerMs, longest)
}

/** An item that is known to be there, and how much it weighs. */
export type PreparedItem = PreparedWords | PreparedMedia

/** What has no bytes besides those of its words. */
export type PreparedWords = (TextItem | MentionItem | ReplyItem) & {
  weight: 0
  bytes: number
}

export interface PreparedMedia {
  type: MediaItem['type']
  /** How much the platform message that holds it grows, in bytes. */
  weight: number
  /** How many bytes the platform has to handle, `undefined` where that is not known. */
  bytes: number | undefined
  /** Reads what is to be read, right before it is sent: a batch of many files need not fit into memory. */
  load: () => LoadedMedia | Promise<LoadedMedia>
}

/**
 * The most data that travels within one platform message, in bytes of base64. NapCat takes frames of up to 50 MiB;
 * the rest is left for text and the frame itself.
 */
const maxWeight = 48 * 1024 * 1024

/**
 * Finds out what an item weighs; of one with a link, where its bytes are and how they travel to the platform.
 *
 * @param account the one that sends
 * @throws RelayError `file-not-found` for a file ID that no longer resolves, `too-large` for what fits no frame
 */
export async function prepareItem(item: Item, options: MediaOptions, { readsFiles }: Pick<Account, 'readsFiles'>): Promise<PreparedItem> {
  if ('link' in item) return prepareMedia(item, readsFiles ? { ...options, transport: 'path' } : options)
  return { ...item, weight: 0, bytes: item.type === 'text' ? Buffer.byteLength(item.text) : 0 }
}

async function prepareMedia({ type, link, name }: MediaItem, options: MediaOptions): Promise<PreparedMedia> {
  switch (link.kind) {
    case 'remote':
      // Only a file is shown with its name, and to find that in each of a thousand links takes a while.
      return { type, weight: 0, bytes: undefined, load: () => ({ type, src: link.url, name: name ?? (type === 'file' ? nameOfUrl(link.url) : '') }) }
    case 'data':
      return prepareData(type, Buffer.byteLength(link.base64, 'base64'), name ?? 'file', () => link.base64, link.mediaType)
    case 'upload': {
      const file = await options.resolve(link.id)
      return prepareUpload(type, { ...file, name: name ?? file.name }, options)
    }
  }
}

function prepareUpload(type: MediaItem['type'], file: StoredFile, { transport, link }: MediaOptions): PreparedMedia {
  const { name, path, size } = file
  switch (transport) {
    case 'path':
      return { type, weight: 0, bytes: size, load: () => ({ type, src: pathToFileURL(path).href, path, name }) }
    case 'url':
      return { type, weight: 0, bytes: size, load: () => ({ type, src: link(file), name }) }
    case 'base64':
      return prepareData(type, size, name, () => readFile(path, 'base64').catch((cause: unknown) => {
        throw new RelayError('file-not-found', undefined, { cause })
      }))
  }
}

function prepareData(
  type: MediaItem['type'],
  bytes: number,
  name: string,
  read: () => string | Promise<string>,
  mediaType = 'application/octet-stream',
): PreparedMedia {
  const weight = Math.ceil(bytes / 3) * 4
  if (weight > maxWeight) {
    throw new RelayError('too-large', 'the file is too large to travel as base64 (36 MiB): send a link, or set MEDIA_TRANSPORT to url')
  }
  return { type, weight, bytes, load: async () => ({ type, src: `data:${mediaType};base64,${await read()}`, name }) }
}

/** What a request would become, had it been sent. */
export interface Preview {
  /** `platform:selfId` of the bot. */
  bot: string
  /** The platform messages with their items, in the order in which they would leave. */
  messages: object[][]
  /** The items that would fail, by their places in the request. */
  wrong: { index: number, code: number, msg: string }[]
}

/**
 * Shows what a request would become, and sends nothing.
 *
 * @throws RelayError what would stop the request as such
 */
export async function preview(request: MessageRequest, options: RelayOptions): Promise<Preview> {
  const account = options.port.choose(request.bot)
  const { target, items, mode } = fitTexts(request, account, options.longText)
  const ready: (PreparedItem & { shown: object })[] = []
  const wrong: Preview['wrong'] = []
  for (const [index, item] of account.check(target, items).entries()) {
    try {
      if (item instanceof RelayError) throw item
      ready.push(Object.assign(await prepareItem(item, options.media, account), { shown: await show(item, options) }))
    } catch (thrown) {
      const error = RelayError.from(thrown)
      if (mode === 'single') throw error
      wrong.push({ index, code: error.status, msg: error.message })
    }
  }
  return { bot: account.sid, messages: compose(ready, account).map(message => message.map(({ shown }) => shown)), wrong }
}

/** An item as its caller knows it: neither where a file lies nor a link to it. */
async function show(item: ParsedItem, { media, files }: RelayOptions): Promise<object> {
  if (item instanceof RelayError || !('link' in item) || item.link.kind === 'remote') return writeItems([item])[0] ?? {}
  const { type, link } = item
  if (link.kind === 'upload') {
    const { name, size } = await media.resolve(link.id)
    return { type, name: item.name ?? name, size, sha256: await files.digest(link.id) ?? null }
  }
  const bytes = Buffer.from(link.base64, 'base64')
  return { type, ...item.name !== undefined && { name: item.name }, size: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
}
