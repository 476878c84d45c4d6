import type { Bot } from 'koishi'
import type { Target } from '../message/model'
import type { Attempt } from '../relay/attempts'
import { toElement } from './elements'
import { createEncoder, render } from './encoder'
import { announceSend, createSession } from './hooks'
import type { LoadedItem } from '../relay/media'
import { SendError, type Receipt } from './port'

/**
 * Sends one platform message through a bot of any platform: the same steps as Koishi's `sendMessage`, told apart, because what
 * other plugins do comes before anything may arrive.
 *
 * @throws SendError, or whatever the adapter throws
 */
export async function sendByAdapter(bot: Bot, target: Target, items: readonly LoadedItem[], attempt: Attempt): Promise<Receipt> {
  const isDirect = target.kind === 'private'
  const channelId = isDirect ? (await bot.createDirectChannel(target.id)).id : target.id
  const encoder = createEncoder(bot, channelId)
  if (!encoder) {
    attempt.begin()
    return toReceipt(await bot.sendMessage(channelId, items.map(toElement)))
  }
  encoder.session = createSession(bot, channelId, isDirect)
  await encoder.prepare()
  await announceSend(bot, encoder.session, await encoder.session.transform(items.map(toElement)))
  attempt.begin()
  return toReceipt(await render(encoder))
}

function toReceipt(ids: readonly string[]): Receipt {
  if (ids.length === 0) throw new SendError('suppressed')
  return { messageIds: ids.filter(id => id !== '') }
}
