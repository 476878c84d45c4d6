import { unwrap } from '../../lib/unwrap'
import { fieldsOf, type JsonObject } from '../../message/parse'
import { toText, type IncomingSupport } from '../incoming'

/** How messages from Discord are read. The adapter takes what members write for markup of Koishi. */
export const incomingDiscord: IncomingSupport = {
  readText(session) {
    const { content } = messageOf(session)
    return typeof content === 'string' ? asTyped(content) : undefined
  },
  // The adapter takes a message without a member, such as one of a webhook, for a private one.
  targetOf(session) {
    const { guild_id: server, channel_id: channel } = messageOf(session)
    return typeof server === 'string' ? { kind: 'group', id: toText(channel) } : undefined
  },
}

/** Source: https://docs.discord.com/developers/events/gateway-events#message-create */
function messageOf(session: object): JsonObject {
  const { t: type, d: message } = fieldsOf(Reflect.get(unwrap(session), 'discord'))
  return type === 'MESSAGE_CREATE' ? fieldsOf(message) : {}
}

/** What Discord makes of mentions and of emoji, as text. Source: https://docs.discord.com/developers/reference#message-formatting */
function asTyped(content: string): string {
  return content.replace(/<@[!&]?(\d+)>/g, '@$1').replace(/<#(\d+)>/g, '#$1').replace(/<a?(:\w+:)\d+>/g, '$1')
}
