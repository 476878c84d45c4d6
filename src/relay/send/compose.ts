import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { RelayError } from '../../errors'
import { divideText } from '../../lib/words'
import { nameOfUrl } from '../../message/link'
import type { Item, LongText, MediaItem, MentionItem, MessageRequest, ParsedItem, ReplyItem, TextItem } from '../../message/model'
import { maxItems, writeItems } from '../../message/parse'
import { SendError, type Account, type LoadedMedia } from '../../platform/port'
import type { MediaOptions, RelayOptions, StoredFile } from '../options'

/** The part of an item that composing needs. */
interface Composable {
  type: 'text' | 'image' | 'file' | 'video' | 'audio' | 'at' | 'reply'
  /** How many bytes the item adds to its platform message. */
  weight: number
  text?: string
}

/**
 * Groups the items of a request into platform messages. Texts and images share messages, in their order. A video or a voice message stands
 * alone, and files follow at the end, each as a message of its own. A mention or a reply joins the next text or image, or else the last
 * message; a reply comes first in its message. A message that would be too heavy or too long, or several messages on the platform, is
 * divided, so that each has its own result.
 */
export function compose<T extends Composable>(items: readonly T[], account: Pick<Account, 'longestText' | 'fits'>): T[][] {
  const maxLength = longestText(account)
  const messages: T[][] = []
  let mixed: T[] = []
  let weight = 0
  let length = 0
  /** Mentions and replies that join the next item. */
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
          || account.fits?.([...mixed, ...ahead, item]) === false
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

/** Divides a platform message into the smallest ones: each item with its mentions and reply. */
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

/** The kind of a platform message: `mixed` has images, mentions or a reply; `heavy` is a video or a voice message, which takes long. */
export type MessageKind = 'text' | 'mixed' | 'heavy' | 'file'

export function kindOf(items: readonly Pick<Composable, 'type'>[]): MessageKind {
  const has = (...types: Composable['type'][]): boolean => items.some(({ type }) => types.includes(type))
  return has('file') ? 'file' : has('video', 'audio') ? 'heavy' : has('image', 'at', 'reply') ? 'mixed' : 'text'
}

/** Whether a message of this kind may be sent again when no look-up can tell whether it arrived. */
export function isRepeatable(kind: MessageKind): boolean {
  return kind === 'text' || kind === 'mixed'
}

/** The assumed speed of a platform, in bytes a millisecond. NapCat itself reckons with 256 KiB a second. */
const bytesPerMs = 256 * 1024 / 1000
/** The settling time of a message with a file, a video, a voice message or a link of unknown size, in milliseconds. */
const longestSettling = 10 * 60_000

/** How long the platform may still carry out a call with these items that got no clear answer, in milliseconds. */
export function settlingTime(items: readonly Pick<PreparedItem, 'type' | 'bytes'>[], least: number): number {
  const longest = Math.max(longestSettling, least)
  const isLong = !isRepeatable(kindOf(items)) || items.some(({ bytes }) => bytes === undefined)
  return isLong ? longest : Math.min(least + items.reduce((sum, { bytes = 0 }) => sum + bytes, 0) / bytesPerMs, longest)
}

/**
 * The items as an account takes them: errors in place of those that it cannot send.
 *
 * @throws RelayError why it takes none of them: the target is wrong, or one item of a single message is
 */
export function checkItems(account: Account, { target, mode }: Pick<MessageRequest, 'target' | 'mode'>, items: readonly ParsedItem[]): readonly ParsedItem[] {
  const checked = account.check(target, items)
  if (mode === 'single') for (const item of checked) if (item instanceof RelayError) throw item
  return checked
}

/** An item that exists, with its weight. */
export type PreparedItem = PreparedWords | PreparedMedia

/** An item without media. */
export type PreparedWords = (TextItem | MentionItem | ReplyItem) & {
  weight: 0
  bytes: number
}

export interface PreparedMedia {
  type: MediaItem['type']
  /** How many bytes the item adds to its platform message. */
  weight: number
  /** How many bytes the platform has to handle; `undefined` if that is not known. */
  bytes: number | undefined
  /** Reads the data, right before the send: a batch of many files need not fit into memory. */
  load: () => LoadedMedia | Promise<LoadedMedia>
}

/**
 * The most data within one platform message, in bytes of base64. NapCat accepts frames of up to 50 MiB; the rest is for texts and the
 * frame itself.
 */
const maxWeight = 48 * 1024 * 1024

/**
 * Computes the weight of an item and, for media, how its data travels to the platform.
 *
 * @param account the account that sends
 * @throws RelayError `file-not-found` for an unknown file ID, `too-large` for data that fits no frame, `refused` for an empty file
 */
export async function prepareItem(
  item: Item, options: MediaOptions, { readsFiles, refusesEmpty }: Pick<Account, 'readsFiles' | 'refusesEmpty'>,
): Promise<PreparedItem> {
  if ('link' in item) {
    const media = await prepareMedia(item, readsFiles ? { ...options, transport: 'path' } : options)
    if (media.bytes === 0 && refusesEmpty !== undefined) throw new SendError('refused', refusesEmpty, { causeId: 'media-failed' }).toRelayError()
    return media
  }
  return { ...item, weight: 0, bytes: item.type === 'text' ? Buffer.byteLength(item.text) : 0 }
}

async function prepareMedia({ type, link, name }: MediaItem, options: MediaOptions): Promise<PreparedMedia> {
  switch (link.kind) {
    case 'remote':
      // Chats show the names of files only, and parsing a thousand links takes a while.
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
    throw new RelayError('too-large', 'the file is too large for base64 (36 MB): send a link, or upload it and set mediaTransport to url or path')
  }
  return { type, weight, bytes, load: async () => ({ type, src: `data:${mediaType};base64,${await read()}`, name }) }
}

/** The assumed longest message of a platform whose limit is not known, in characters. */
const usualLength = 4000
/** How much of a long text is sent before its file, in characters. */
const excerptLength = 1000
/** The most messages of one text. A longer text leaves as a file, or is refused. */
const mostParts = 50
const tooLong = `the text is too long for this chat: it would take more than ${mostParts} messages`
const labelLength = `(${mostParts}/${mostParts})\n`.length

/** The files made of texts. All targets of a request share them. */
const files = new WeakMap<TextItem, Item>()

/** The longest message of an account, in UTF-16 units. */
export function longestText({ longestText }: Pick<Account, 'longestText'>): number {
  return Number.isFinite(longestText) ? longestText : usualLength
}

/**
 * Replaces texts that are too long for a platform by parts, or by an excerpt and a file.
 *
 * @param setting overrides the form that the door of the request asks for
 * @returns the same request if no text is too long
 * @throws RelayError `bad-request`
 */
export function fitTexts(
  request: MessageRequest, account: Pick<Account, 'longestText' | 'takesFiles'>, setting: LongText | '',
): MessageRequest {
  const form = setting || request.longText
  if (!form) return refuseFloods(request, account)
  const most = longestText(account)
  const isLong = (item: ParsedItem): item is TextItem => 'text' in item && item.text.length > most
  if (!request.items.some(isLong)) return request
  const fit = (item: TextItem): ParsedItem[] => {
    const parts = divideText(item.text, most - labelLength)
    const isFew = parts.length <= mostParts
    if (account.takesFiles && !(form === 'divide' && isFew)) return [{ type: 'text', text: excerptOf(item.text, most) }, fileOf(item)]
    if (!isFew) return [new RelayError('too-large', tooLong)]
    return parts.map((part, index) => ({ type: 'text', text: `(${index + 1}/${parts.length})\n${part.replace(/\r?\n$/, '')}` }))
  }
  const items = request.items.flatMap(item => isLong(item) ? fit(item) : [item])
  if (items.length > maxItems) throw new RelayError('bad-request', `its long texts would make more than ${maxItems} items: send fewer`)
  return { ...request, items, mode: request.longText ? 'batch' : request.mode }
}

/** Refuses texts that would fill a chat with messages: on some platforms, Koishi's adapter divides a long text. */
function refuseFloods(request: MessageRequest, { longestText }: Pick<Account, 'longestText'>): MessageRequest {
  const isFlood = (item: ParsedItem): boolean => 'text' in item && item.text.length > mostParts * longestText
  if (!request.items.some(isFlood)) return request
  const refusal = new RelayError('too-large', `${tooLong}; send it by /send, or set longText, and it leaves as a file`)
  return { ...request, items: request.items.map(item => isFlood(item) ? refusal : item) }
}

function fileOf(item: TextItem): Item {
  const known = files.get(item)
  if (known) return known
  const base64 = Buffer.from(item.text).toString('base64')
  const file: Item = { type: 'file', link: { kind: 'data', base64, mediaType: 'text/plain' }, name: 'message.txt' }
  files.set(item, file)
  return file
}

/** The first lines of a long text, or the start of the first line if it is too long. Leading blanks are left out. */
export function excerptOf(text: string, most = excerptLength): string {
  const start = text.trimStart()
  const head = start.slice(0, Math.min(most, excerptLength)).replace(/[\uD800-\uDBFF]$/, '')
  const isWhole = /^\r?(?:\n|$)/.test(start.slice(head.length, head.length + 2))
  const end = isWhole ? head.length : head.lastIndexOf('\n')
  return head.slice(0, end > 0 ? end : head.length).trimEnd()
}

/** The platform messages that a request would become. */
export interface Preview {
  /** `platform:selfId` of the bot. */
  bot: string
  /** The platform messages with their items, in the order in which they would leave. */
  messages: object[][]
  /** The items that would fail, with their places in the request. */
  wrong: { index: number, code: number, msg: string }[]
}

/**
 * Composes a request without sending it.
 *
 * @throws RelayError the reason why the request would be refused as a whole
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

/** An item as its caller may see it: without the path of a file or a link to it. */
async function show(item: ParsedItem, { media, files }: RelayOptions): Promise<object> {
  if (item instanceof RelayError || !('link' in item) || item.link.kind === 'remote') return writeItems([item])[0] ?? {}
  const { type, link } = item
  if (link.kind === 'upload') {
    const { name, size } = await media.resolve(link.id)
    return { type, name: item.name ?? name, size, sha256: await files.hash(link.id) ?? null }
  }
  const bytes = Buffer.from(link.base64, 'base64')
  return { type, ...item.name !== undefined && { name: item.name }, size: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
}
