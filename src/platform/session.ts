import { h, MessageEncoder, Universal, type Bot } from 'koishi'
import { describePlace } from '../lib/log'
import type { BotAccount } from './account'
import { SendError, type LoadedItem } from './port'
import { say } from '../texts/text'

/* A message in Koishi's terms: its elements, its session, which other plugins see, and the adapter's encoder, which sends the elements. */

const direct = Universal.Channel.Type.DIRECT
const text = Universal.Channel.Type.TEXT

/** The session of an outgoing message, for other plugins. */
export type SendSession = ReturnType<Bot['session']>

const mediaElements = { image: 'img', video: 'video', audio: 'audio', file: 'file' } as const

/** An item as a Koishi element. Text becomes a text node, never markup. */
export function toElement(item: LoadedItem): h {
  switch (item.type) {
    case 'text':
      return h.text(item.text)
    case 'at':
      return h('at', item.userId === null ? { type: 'all' } : { id: item.userId })
    case 'reply':
      return h('quote', { id: item.messageId })
    default:
      return h(mediaElements[item.type], { src: item.src, ...item.type === 'file' && { title: item.name } })
  }
}

/**
 * Keeps tags of mentions in a text from being live, by an invisible character: `<@id>`, `<@&role>` and `@everyone` of Discord,
 * `<at user_id="…">` of Feishu, and those of QQ:
 * https://bot.q.qq.com/wiki/develop/api-v2/server-inter/message/trans/text-chain.html
 */
export function breakTags(text: string): string {
  return text.replace(/<(?=[@#]|at\b|qqbot-|emoji:)|@(?=everyone)/g, '$&\u200b')
}

/** The session of a message to a channel, as Koishi's own encoders make it. @param event further fields of its event */
export function createSession(bot: Bot, id: string, isDirect: boolean, event: Partial<Universal.Event> = {}): SendSession {
  return bot.session({ ...event, type: 'send', channel: { id, type: isDirect ? direct : text } })
}

/**
 * Shows a message to other plugins before it is sent. They may change the elements of the session. Failures of plugins are logged.
 *
 * @returns the elements afterwards
 * @throws SendError `suppressed` if a plugin suppresses the message, or fails
 */
export async function announceSend({ bot, lifecycle }: BotAccount, session: SendSession, elements: h[]): Promise<h[]> {
  session.elements = elements
  let isSuppressed: unknown
  try {
    isSuppressed = await lifecycle.serial(session, 'before-send', session, {})
  } catch (error) {
    bot.logger.warn('%s', `a plugin that listens to before-send failed, and the message was not sent: ${describePlace(error)}`)
    throw new SendError('suppressed', undefined, { cause: error })
  }
  if (isSuppressed || !session.elements.length) throw new SendError('suppressed')
  return session.elements
}

/** Shows a sent message to other plugins. Their errors are logged. */
export function announceSent({ bot, lifecycle }: BotAccount, session: SendSession, messageId: string): void {
  session.messageId = messageId
  session.userId = bot.selfId
  try {
    lifecycle.emit(session, 'send', session)
  } catch (error) {
    bot.logger.warn(error)
  }
}

type EncoderClass = new (bot: Bot, channelId: string) => MessageEncoder

/** The class of the adapter's message encoder; `undefined` if the bot has none. */
export function encoderOf(bot: Bot): EncoderClass | undefined {
  const Encoder: unknown = Reflect.get(bot.constructor, 'MessageEncoder')
  return isEncoderClass(Encoder) ? Encoder : undefined
}

function isEncoderClass(value: unknown): value is EncoderClass {
  return typeof value === 'function' && value.prototype instanceof MessageEncoder
}

/**
 * Prepares the adapter's encoder for a session. Its `session`, `results` and `errors` are used as in @satorijs/core 4.6.0,
 * `MessageEncoder.send`.
 *
 * @param adapt sets what the encoder needs besides the session
 * @returns a function that sends the elements of the session without announcing them again. It returns the IDs of the platform messages, an
 *   empty text for a message without an ID; it throws a SendError if only a part has arrived, otherwise the error of the adapter.
 */
export async function encode(
  bot: Bot, channelId: string, session: SendSession, adapt?: (encoder: MessageEncoder) => unknown,
): Promise<() => Promise<string[]>> {
  const Encoder = encoderOf(bot)
  if (!Encoder) throw new SendError('refused', say('cannot-encode'))
  const encoder = new Encoder(bot, channelId)
  encoder.session = session
  await adapt?.(encoder)
  await encoder.prepare()
  return async () => {
    try {
      await encoder.render(session.elements ?? [], true)
      if (encoder.errors.length > 0) throw new AggregateError(encoder.errors)
    } catch (error) {
      throw encoder.results.length > 0 ? partlyArrived(error) : error
    }
    return encoder.results.map(message => message.id ?? '')
  }
}

/** The failure of a divided message. It is final if a further call would repeat the part that has arrived. */
export function partlyArrived(cause: unknown, isFinal = true): SendError {
  return new SendError('unanswered', say('only-partly-arrived'), { isFinal, cause, limit: cause instanceof SendError ? cause.limit : undefined })
}
