import type { Bot } from 'koishi'
import type { Presence } from '../connections/presence'
import type { Target } from '../message/model'
import type { Passage } from './attempts'
import { carry } from './carrier'
import type { LoadedItem } from './media'
import { isOneBot } from './onebot/carrier'
import { lookUp } from './onebot/history'
import type { Sightings } from './onebot/sightings'

/** Makes the way of one platform message through a bot: how it is sent, and how it is looked up when it goes unanswered. */
export function createPassages(presence: Presence, sightings: Sightings) {
  return (bot: Bot, target: Target, items: readonly LoadedItem[]): Passage => ({
    async call(attempt) {
      const since = Date.now()
      const receipt = await carry(bot, target, items, attempt)
      if (isOneBot(bot)) sightings.account(bot, target, receipt.messageIds, { items, since })
      return receipt
    },
    lookUp: since => isOneBot(bot) ? lookUp(bot, target, items, since, sightings) : Promise.resolve({ kind: 'no-history' }),
    onLost: callback => presence.onOffline(bot, callback),
    onConnected: callback => presence.onOnline(bot, callback),
  })
}
