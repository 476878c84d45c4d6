import { h, MessageEncoder, Universal, type Bot } from 'koishi'
import { unwrap } from '../lib/unwrap'
import { SendError, type LoadedItem } from './port'

const direct = Universal.Channel.Type.DIRECT
const text = Universal.Channel.Type.TEXT

/** The session that other plugins see of a message that is sent. */
export type SendSession = ReturnType<Bot['session']>

/** An item as a Koishi element. Text goes in as a text node, never as markup. */
export function toElement(item: LoadedItem): h {
  switch (item.type) {
    case 'text':
      return h.text(item.text)
    case 'image':
      return h('img', { src: item.src })
    case 'video':
      return h('video', { src: item.src })
    case 'audio':
      return h('audio', { src: item.src })
    case 'at':
      return item.userId === null ? h('at', { type: 'all' }) : h('at', { id: item.userId })
    case 'reply':
      return h('quote', { id: item.messageId })
    case 'file':
      return h('file', { src: item.src, title: item.name })
  }
}

/** The session of a message to a channel, as Koishi's own encoders make it. */
export function createSession(bot: Bot, channelId: string, isDirect: boolean, guildId?: string): SendSession {
  return bot.session({
    type: 'send',
    channel: { id: channelId, type: isDirect ? direct : text },
    ...guildId !== undefined && { guild: { id: guildId } },
  })
}

/**
 * Whether any plugin would be told of a message that is sent. In many a bot none is, and to make the session that is shown takes a tenth of
 * a send. The listeners are where `Lifecycle` of @cordisjs/core 3.18.1 has them; those of `internal/event` are told of all events.
 */
export function isHeard(bot: Bot): boolean {
  const { _hooks: listeners } = lifecycleOf(bot)
  return ['before-send', 'send', 'internal/event'].some(event => (listeners[event] ?? []).length > 0)
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
    suppressed = await lifecycleOf(bot).serial(session, 'before-send', session, {})
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
    lifecycleOf(bot).emit(session, 'send', session)
  } catch (error) {
    bot.logger.warn(error)
  }
}

type Lifecycle = Bot['ctx']['lifecycle']

/** To read it takes as long as to tell the others. */
const lifecycles = new WeakMap<Bot, Lifecycle>()

/** What tells the plugins of a bot's app what happens. */
function lifecycleOf(bot: Bot): Lifecycle {
  const known = lifecycles.get(bot)
  if (known) return known
  const lifecycle = unwrap(bot.ctx.root.lifecycle)
  lifecycles.set(bot, lifecycle)
  return lifecycle
}

type EncoderClass = new (bot: Bot, channelId: string) => MessageEncoder

/**
 * The adapter's message encoder for a channel, `undefined` when the bot has none. Its `session`, `results` and `errors` are used as
 * in @satorijs/core 4.6.0, `MessageEncoder.send`.
 */
export function createEncoder(bot: Bot, channelId: string): MessageEncoder | undefined {
  const Encoder: unknown = Reflect.get(bot.constructor, 'MessageEncoder')
  return isEncoderClass(Encoder) ? new Encoder(bot, channelId) : undefined
}

function isEncoderClass(value: unknown): value is EncoderClass {
  return typeof value === 'function' && value.prototype instanceof MessageEncoder
}

/**
 * Sends the elements of the encoder's session, without asking other plugins again.
 *
 * @returns the IDs of the platform messages; an empty one where the platform gave none
 * @throws SendError when only a part has arrived, otherwise whatever the adapter throws
 */
export async function render(encoder: MessageEncoder): Promise<string[]> {
  try {
    await encoder.render(encoder.session.elements ?? [], true)
    if (encoder.errors.length > 0) throw new AggregateError(encoder.errors)
  } catch (error) {
    throw encoder.results.length > 0 ? partlyArrived(error) : error
  }
  return encoder.results.map(message => message.id ?? '')
}

/** The failure of a message that an adapter has divided: to try again would repeat the part that has arrived. */
export function partlyArrived(cause: unknown): SendError {
  return new SendError('unanswered', 'only a part of it has arrived', { isFinal: true, cause })
}
