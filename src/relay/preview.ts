import { createHash } from 'node:crypto'
import { RelayError } from '../errors'
import type { MessageRequest, ParsedItem } from '../message/model'
import { writeItems } from '../message/parse'
import type { Port } from '../platform/port'
import type { DigestUpload } from './delivery/fingerprint'
import { compose } from './sending/compose'
import { maxWeight, prepareItem, type MediaOptions, type PreparedItem } from './sending/media'

/** What a request would become, had it been sent. */
export interface Preview {
  /** `platform:selfId` of the bot. */
  bot: string
  /** The platform messages with their items, in the order in which they would leave. */
  messages: object[][]
  /** The items that would fail, by their places in the request. */
  wrong: { index: number, code: number, msg: string }[]
}

/** What is needed for it of the rest of the relay. */
interface PreviewOptions {
  port: Port
  media: MediaOptions
  digestUpload: DigestUpload
}

/**
 * Shows what a request would become, and sends nothing.
 *
 * @throws RelayError what would stop the request as such
 */
export async function preview({ target, bot, items, mode }: MessageRequest, options: PreviewOptions): Promise<Preview> {
  const account = options.port.choose(bot)
  account.checkIds(target, items)
  const ready: (PreparedItem & { shown: object })[] = []
  const wrong: Preview['wrong'] = []
  for (const [index, item] of items.entries()) {
    try {
      if (item instanceof RelayError) throw item
      ready.push(Object.assign(await prepareItem(item, options.media), { shown: await show(item, options) }))
    } catch (thrown) {
      const error = RelayError.from(thrown)
      if (mode === 'single') throw error
      wrong.push({ index, code: error.status, msg: error.message })
    }
  }
  return { bot: account.sid, messages: compose(ready, maxWeight).map(message => message.map(({ shown }) => shown)), wrong }
}

/** An item as its caller knows it: neither where a file lies nor a link to it. */
async function show(item: ParsedItem, { media, digestUpload }: PreviewOptions): Promise<object> {
  if (item instanceof RelayError || !('link' in item) || item.link.kind === 'remote') return writeItems([item])[0] ?? {}
  const { type, link } = item
  if (link.kind === 'upload') {
    const { name, size } = await media.resolve(link.id)
    return { type, name: item.name ?? name, size, sha256: await digestUpload(link.id) ?? null }
  }
  const bytes = Buffer.from(link.base64, 'base64')
  return { type, ...item.name !== undefined && { name: item.name }, size: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
}
