import { Universal, type Bot, type h } from 'koishi'
import type { Target } from '../message/model'
import { SendError } from './outcome'
import { unwrap } from './unwrap'

/** The session that other plugins see of a message that is sent. */
export type SendSession = ReturnType<Bot['session']>

/**
 * Shows other plugins what is about to be sent, as Koishi's own encoders do. They may change the elements of the session.
 *
 * @param channelId the ID of the channel on the bot's platform
 * @throws SendError `suppressed` when one of them keeps the message from being sent, or fails
 */
export async function announceSend(bot: Bot, target: Target, channelId: string, elements: h[]): Promise<SendSession> {
  const isDirect = target.kind === 'private'
  const session = bot.session({
    type: 'send',
    channel: { id: channelId, type: isDirect ? Universal.Channel.Type.DIRECT : Universal.Channel.Type.TEXT },
    ...!isDirect && { guild: { id: target.id } },
  })
  session.elements = elements
  let suppressed: unknown
  try {
    suppressed = await unwrap(bot.ctx.root.lifecycle).serial(session, 'before-send', session, {})
  } catch (error) {
    throw new SendError('suppressed', undefined, false, { cause: error })
  }
  if (suppressed || !session.elements.length) throw new SendError('suppressed')
  return session
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
