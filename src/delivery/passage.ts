import type { Bot } from 'koishi'
import type { Presence } from '../connections/presence'
import type { Target } from '../message/model'
import type { Passage } from './attempts'
import { sendByAdapter } from './carrier'
import type { LoadedItem } from './media'
import { isOneBot, sendByOneBot } from './onebot/carrier'
import { contentOfMessage } from './onebot/content'
import { lookUp, lookUpContent } from './onebot/history'
import type { Sightings } from './onebot/sightings'

/** Makes the way of one platform message through a bot: how it is sent, and how it is looked up when it goes unanswered. */
export function createPassages(presence: Presence, sightings: Sightings) {
  return (bot: Bot, target: Target, items: readonly LoadedItem[]): Passage => {
    /** The segments that were sent: other plugins may have changed what the items say. */
    let sent: unknown
    /** Whether the message was found already: then an answer that comes late tells of the same one. */
    let isFound = false
    return {
      async call(attempt) {
        const since = Date.now()
        if (!isOneBot(bot)) return sendByAdapter(bot, target, items, attempt)
        const receipt = await sendByOneBot(bot, target, items, attempt, message => {
          sent = message
        })
        if (!isFound) sightings.account(bot, target, receipt.messageIds, { items, since })
        return receipt
      },
      async lookUp(since) {
        if (!isOneBot(bot) || sent === null) return { kind: 'no-history' }
        const content = contentOfMessage(sent)
        const finding = content
          ? await lookUpContent(bot, target, content, since, sightings)
          : await lookUp(bot, target, items, since, sightings)
        isFound ||= finding.kind === 'found'
        return finding
      },
      onLost: callback => presence.onOffline(bot, callback),
      onConnected: callback => presence.onOnline(bot, callback),
    }
  }
}
