import { MessageEncoder, type Bot } from 'koishi'
import type { SendSession } from '../hooks'
import type { Receipt } from '../outcome'

type EncoderClass = new (bot: Bot, channelId: string) => MessageEncoder

/**
 * Sends the elements of a session with the adapter's own encoder, without asking other plugins again.
 *
 * @throws whatever the adapter throws
 */
export async function encode(bot: Bot, channelId: string, session: SendSession): Promise<Receipt> {
  const Encoder: unknown = Reflect.get(bot.constructor, 'MessageEncoder')
  if (!isEncoderClass(Encoder)) throw new Error('the adapter has no message encoder')
  const encoder = new Encoder(bot, channelId)
  encoder.session = session
  await encoder.prepare()
  await encoder.render(session.elements ?? [], true)
  if (encoder.errors.length > 0) throw new AggregateError(encoder.errors)
  return { messageIds: encoder.results.map(message => message.id ?? '').filter(id => id !== '') }
}

function isEncoderClass(value: unknown): value is EncoderClass {
  return typeof value === 'function' && value.prototype instanceof MessageEncoder
}
