import { Universal, type Bot, type h } from 'koishi'
import { SendError } from './port'
import { unwrap } from '../lib/unwrap'

/** The session that other plugins see of a message that is sent. */
export type SendSession = ReturnType<Bot['session']>

/** The session of a message to a channel, as Koishi's own encoders make it. */
export function createSession(bot: Bot, channelId: string, isDirect: boolean, guildId?: string): SendSession {
  const { stackTraceLimit } = Error
  // Cordis makes an error for each service that is read, in case it has to warn, and its stack is what costs.
  Error.stackTraceLimit = 0
  try {
    return bot.session({
      type: 'send',
      channel: { id: channelId, type: isDirect ? Universal.Channel.Type.DIRECT : Universal.Channel.Type.TEXT },
      ...guildId !== undefined && { guild: { id: guildId } },
    })
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

/**
 * Shows other plugins what is about to be sent. They may change the elements of the session.
 *
 * @returns what they made of the elements
 * @throws SendError `suppressed` when one of them keeps the message from being sent, or fails
 */
export async function announceSend(bot: Bot, session: SendSession, elements: h[]): Promise<h[]> {
  session.elements = elements
  let suppressed: unknown
  try {
    suppressed = await unwrap(bot.ctx.root.lifecycle).serial(session, 'before-send', session, {})
  } catch (error) {
    throw new SendError('suppressed', undefined, { cause: error })
  }
  if (suppressed || !session.elements.length) throw new SendError('suppressed')
  return session.elements
}

/** Shows other plugins what was sent. What they throw does not make it unsent. */
export function announceSent(bot: Bot, session: SendSession, messageId: string): void {
  session.messageId = messageId
  session.userId = bot.selfId
  try {
    unwrap(bot.ctx.root.lifecycle).emit(session, 'send', session)
  } catch (error) {
    bot.logger.warn(error)
  }
}
