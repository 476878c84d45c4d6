import { MessageEncoder, type Bot } from 'koishi'

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
 * @throws whatever the adapter throws
 */
export async function render(encoder: MessageEncoder): Promise<string[]> {
  await encoder.render(encoder.session.elements ?? [], true)
  if (encoder.errors.length > 0) throw new AggregateError(encoder.errors)
  return encoder.results.map(message => message.id ?? '')
}

function isEncoderClass(value: unknown): value is EncoderClass {
  return typeof value === 'function' && value.prototype instanceof MessageEncoder
}
