import { createHash } from 'node:crypto'
import { RelayError } from '../../errors'
import type { MessageRequest, ParsedItem } from '../../message/model'
import { writeItems } from '../../message/parse'
import type { RelayOptions } from '../options'
import { compose } from './compose'
import { fitTexts } from './fit'
import { prepareItem, type PreparedItem } from './media'
import type { Text } from '../../texts/text'

/** The platform messages that a request would become. */
export interface Preview {
  /** `platform:selfId` of the bot. */
  bot: string
  /** The platform messages with their items, in the order in which they would leave. */
  messages: object[][]
  /** The items that would fail, with their places in the request. */
  wrong: { index: number, code: number, msg: Text }[]
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
      wrong.push({ index, code: error.status, msg: error.said })
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
