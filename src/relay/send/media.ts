import { readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { RelayError } from '../../errors'
import { nameOfUrl } from '../../message/link'
import type { Item, MediaItem, MentionItem, ReplyItem, TextItem } from '../../message/model'
import { SendError, type Account, type LoadedMedia } from '../../platform/port'
import type { MediaOptions, StoredFile } from '../options'
import { say } from '../../texts/text'

/**
 * The most data within one platform message, in bytes of base64. NapCat accepts frames of up to 50 MiB; the rest is for texts and the
 * frame itself.
 */
export const maxWeight = 48 * 1024 * 1024

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
  if (weight > maxWeight) throw new RelayError('too-large', say('too-large-for-base64'))
  return { type, weight, bytes, load: async () => ({ type, src: `data:${mediaType};base64,${await read()}`, name }) }
}
