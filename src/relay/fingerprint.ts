import { RelayError } from '../errors'
import { digest } from '../lib/crypto'
import { writeLink } from '../message/link'
import type { MessageRequest, ParsedItem } from '../message/model'
import { writeTarget } from '../message/target'
import type { Files } from './options'

/**
 * A digest of a request's meaning: the order of fields does not count. An uploaded file counts by its content, because a repeated job
 * uploads it again under another ID; a missing file counts by its ID.
 *
 * @param digestUpload returns a digest of the content of an uploaded file; `undefined` if there is no such file
 */
export async function fingerprintOf(
  { mode, target, bot, items, expiresIn, urgent, sendAt, thread, threadMode, route }: MessageRequest, digestUpload: Files['digest'],
): Promise<string> {
  const meanings: string[] = []
  for (const item of items) meanings.push(await digestItem(item, digestUpload))
  const wishes = [expiresIn, Boolean(urgent), sendAt?.written, thread, threadMode, route?.name]
  return digest(JSON.stringify([mode, writeTarget(target), bot.platform, bot.selfId, meanings, wishes]))
}

async function digestItem(item: ParsedItem, digestUpload: Files['digest']): Promise<string> {
  if (item instanceof RelayError) return digest(`error ${item.code}\n`, item.message)
  if (item.type === 'text') return digest('text\n', item.text)
  if (item.type === 'at') return digest('at\n', item.userId ?? '')
  if (item.type === 'reply') return digest('reply\n', item.messageId)
  const { type, link } = item
  const written = writeLink(link)
  const content = link.kind === 'upload' ? await digestUpload(link.id) : undefined
  if (content === undefined) return digest(`${type}\n`, item.name === undefined ? '' : `${item.name}\n`, written)
  // Chats show the names of files only. By default, the name is the end of the ID.
  const { name = written.slice(written.indexOf('/') + 1) } = item
  return digest(`${type}\n`, type === 'file' ? `/${name}` : '', `\n${content}`)
}
