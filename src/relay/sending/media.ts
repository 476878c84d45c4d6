import { readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { RelayError } from '../../errors'
import { nameOfUrl } from '../../message/link'
import type { Item, MediaItem, MentionItem, ReplyItem, TextItem } from '../../message/model'
import type { LoadedMedia } from '../../platform/port'

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
export const maxWeight = 48 * 1024 * 1024

/** An uploaded file, as a send needs it. */
export interface StoredFile {
  id: string
  /** Absolute. */
  path: string
  name: string
  /** In bytes. */
  size: number
}

/** What the preparation of media needs from elsewhere. */
export interface MediaOptions {
  /** How an uploaded file reaches the platform: it sees the same disk, or gets the bytes, or fetches them by a link. */
  transport: 'path' | 'base64' | 'url'
  resolve: (id: string) => Promise<StoredFile>
  /** A signed link to an uploaded file. */
  link: (file: StoredFile) => string
}

/**
 * Finds out what an item weighs; of one with a link, where its bytes are and how they travel to the platform.
 *
 * @throws RelayError `file-not-found` for a file ID that no longer resolves, `too-large` for what fits no frame
 */
export function prepareItem(item: Item, options: MediaOptions): PreparedItem | Promise<PreparedMedia> {
  if ('link' in item) return prepareMedia(item, options)
  // Field by field: nearly all that is sent is text, and to spread it takes as long as much of the rest.
  if (item.type === 'text') return { type: item.type, text: item.text, weight: 0, bytes: Buffer.byteLength(item.text) }
  return { ...item, weight: 0, bytes: 0 }
}

async function prepareMedia({ type, link, name }: MediaItem, options: MediaOptions): Promise<PreparedMedia> {
  switch (link.kind) {
    case 'remote':
      // Only a file is shown with its name, and to find that in each of a thousand links takes a while.
      return { type, weight: 0, bytes: undefined, load: () => ({ type, src: link.url, name: name ?? (type === 'file' ? nameOfUrl(link.url) : '') }) }
    case 'data':
      return prepareData(type, link.base64.length, name ?? 'file', () => link.base64, link.mediaType)
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
      return prepareData(type, Math.ceil(size / 3) * 4, name, () => readFile(path, 'base64').catch((cause: unknown) => {
        throw new RelayError('file-not-found', undefined, { cause })
      }))
  }
}

function prepareData(
  type: MediaItem['type'],
  weight: number,
  name: string,
  read: () => string | Promise<string>,
  mediaType = 'application/octet-stream',
): PreparedMedia {
  if (weight > maxWeight) {
    throw new RelayError('too-large', 'the file is too large to travel as base64 (36 MiB): send a link, or set MEDIA_TRANSPORT to url')
  }
  return { type, weight, bytes: Math.floor(weight * 3 / 4), load: async () => ({ type, src: `data:${mediaType};base64,${await read()}`, name }) }
}
