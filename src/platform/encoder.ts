import { MessageEncoder, type Bot } from 'koishi'
import { SendError } from './port'

type EncoderClass = new (bot: Bot, channelId: string) => MessageEncoder

/** The adapter's message encoder for a channel, `undefined` when the bot has none. */
export function createEncoder(bot: Bot, channelId: string): MessageEncoder | undefined {
  const Encoder: unknown = Reflect.get(bot.constructor, 'MessageEncoder')
  return isEncoderClass(Encoder) ? new Encoder(bot, channelId) : undefined
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

function isEncoderClass(value: unknown): value is EncoderClass {
  return typeof value === 'function' && value.prototype instanceof MessageEncoder
}
