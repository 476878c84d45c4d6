import { RelayError } from '../../errors'
import { digest } from '../../lib/crypto'
import { writeLink } from '../../message/link'
import type { Item, MessageRequest, ParsedItem } from '../../message/model'
import { writeTarget } from '../../message/target'

/** Gives a digest of the content of an uploaded file, `undefined` when there is no file with this ID. */
export type DigestUpload = (id: string) => Promise<string | undefined>

/**
 * What a request means, as a digest: the order of its fields does not count. An uploaded file counts by its content, because a job that is
 * run again uploads its file again and gets another ID; one that is not there counts by its ID.
 */
export async function fingerprintOf({ mode, target, bot, items, expiresIn }: MessageRequest, digestUpload: DigestUpload): Promise<string> {
  const meanings: string[] = []
  for (const item of items) meanings.push(await digestUploaded(item, digestUpload) ?? digestItem(item))
  return digest(JSON.stringify([mode, writeTarget(target), bot.platform ?? null, bot.selfId ?? null, expiresIn ?? null, meanings]))
}

/** What an item says, as a digest. An uploaded file counts by its ID. */
export function digestItem(item: ParsedItem): string {
  if (item instanceof RelayError) return digest(`error ${item.code}\n`, item.message)
  return digest(`${item.type}\n`, saying(item))
}

function saying(item: Item): string {
  switch (item.type) {
    case 'text':
      return item.text
    case 'at':
      return item.userId ?? ''
    case 'reply':
      return item.messageId
    default:
      return item.name === undefined ? writeLink(item.link) : `${item.name}\n${writeLink(item.link)}`
  }
}

/** @returns `undefined` when it is no uploaded file, or one that is not there */
async function digestUploaded(item: ParsedItem, digestUpload: DigestUpload): Promise<string | undefined> {
  if (!('link' in item) || item.link.kind !== 'upload') return
  const { type, link: { id }, name = id.slice(id.indexOf('/') + 1) } = item
  const content = await digestUpload(id)
  // Only a file is shown with its name, which ends its ID unless it has another one.
  return content && digest(`${type}\n`, type === 'file' ? `/${name}` : '', `\n${content}`)
}
