import type { Bot } from 'koishi'
import type { Target } from '../message/model'
import type { Attempt } from './attempts'
import { toElement } from './elements'
import type { LoadedItem } from './media'
import { isOneBot, sendByOneBot } from './onebot/carrier'
import { SendError, type Receipt } from './outcome'

/**
 * Sends one platform message through a bot of any platform.
 *
 * @throws SendError, or whatever the adapter throws
 */
export function carry(bot: Bot, target: Target, items: readonly LoadedItem[], attempt: Attempt): Promise<Receipt> {
  return isOneBot(bot) ? sendByOneBot(bot, target, items, attempt) : sendByAdapter(bot, target, items, attempt)
}

async function sendByAdapter(bot: Bot, target: Target, items: readonly LoadedItem[], attempt: Attempt): Promise<Receipt> {
  const elements = items.map(toElement)
  attempt.begin()
  const ids = target.kind === 'group'
    ? await bot.sendMessage(target.id, elements)
    : await bot.sendPrivateMessage(target.id, elements)
  if (ids.length === 0) throw new SendError('suppressed')
  return { messageIds: ids.filter(id => id !== '') }
}
