import { unwrap } from '../../lib/unwrap'
import { fieldsOf, type JsonObject } from '../../message/parse'
import { elementsText, toText, type IncomingSupport } from '../incoming'

/** How messages from Telegram are read. Of a command, `/name@bot`, the adapter keeps neither the slash nor the name of the bot. */
export const incomingTelegram: IncomingSupport = {
  readText(session) {
    const { _type: platform, type, message, _data: update } = eventOf(session)
    if (platform !== 'telegram') return
    const text = elementsText(fieldsOf(message).elements)
    return type === command ? firstWord(update).slice(0, 1) + text : text
  },
  readRaw(session) {
    const { type, message, _data: update } = eventOf(session)
    if (type === command) return firstWord(update) + elementsText(fieldsOf(message).elements).replace(/^\S+/, '')
  },
  // The adapter takes a topic for a channel, and its group for the guild.
  targetOf(session) {
    const { guild, channel } = eventOf(session)
    const [group, topic] = [fieldsOf(guild).id, fieldsOf(channel).id].map(toText)
    if (group && topic && group !== topic) return { kind: 'group', id: `${group}:${topic}` }
  },
}

const command = 'interaction/command'

function eventOf(session: object): JsonObject {
  return fieldsOf(Reflect.get(unwrap(session), 'event'))
}

/** The first word of a message as it was typed. Source: https://core.telegram.org/bots/api#message */
function firstWord(update: unknown): string {
  return /^\S*/.exec(toText(fieldsOf(fieldsOf(update).message).text))?.[0] ?? ''
}
