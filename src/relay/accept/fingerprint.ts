import { RelayError } from '../../errors'
import { hash } from '../../lib/crypto'
import { writeLink } from '../../message/link'
import type { MessageRequest, ParsedItem } from '../../message/model'
import { writeTarget } from '../../message/target'
import type { Files } from '../options'

/**
 * A digest of a request's meaning: the order of fields does not count. An uploaded file counts by its content, because a repeated job
 * uploads it again under another ID; a missing file counts by its ID.
 *
 * @param hashUpload returns a digest of the content of an uploaded file; `undefined` if there is no such file
 */
export async function fingerprintOf(
  { mode, target, bot, items, expiresIn, urgent, sendAt, thread, threadMode, severity, mention, route }: MessageRequest,
  hashUpload: Files['hash'],
): Promise<string> {
  const meanings: string[] = []
  for (const item of items) meanings.push(await hashItem(item, hashUpload))
  const event = severity ?? mention ? [severity, mention] : []
  const wishes = [expiresIn, Boolean(urgent), sendAt?.written, thread, threadMode, route?.name, ...event]
  return hash(JSON.stringify([mode, writeTarget(target), bot.platform, bot.selfId, meanings, wishes]))
}

async function hashItem(item: ParsedItem, hashUpload: Files['hash']): Promise<string> {
  if (item instanceof RelayError) return hash(`error ${item.code}\n`, item.message)
  if (item.type === 'text') return hash('text\n', item.text)
  if (item.type === 'at') return hash('at\n', item.userId ?? '')
  if (item.type === 'reply') return hash('reply\n', item.messageId)
  const { type, link } = item
  const written = writeLink(link)
  const content = link.kind === 'upload' ? await hashUpload(link.id) : undefined
  if (content === undefined) return hash(`${type}\n`, item.name === undefined ? '' : `${item.name}\n`, written)
  // Chats show the names of files only. By default, the name is the end of the ID.
  const { name = written.slice(written.indexOf('/') + 1) } = item
  return hash(`${type}\n`, type === 'file' ? `/${name}` : '', `\n${content}`)
}
