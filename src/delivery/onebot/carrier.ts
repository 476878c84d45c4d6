import type { Bot, h } from 'koishi'
import type { Target } from '../../message/model'
import { isObject, type JsonObject } from '../../message/parse'
import type { Attempt } from '../attempts'
import { toElement } from '../elements'
import { announceSend, announceSent } from '../hooks'
import type { LoadedItem, LoadedMedia } from '../media'
import { SendError, type Receipt } from '../outcome'
import { readAnswer } from './answer'
import { encode } from './encoder'
import { toFile, toSegments } from './segments'

/** Whether a bot speaks OneBot 11. */
export function isOneBot(bot: Bot): boolean {
  return bot.platform === 'onebot'
}

/**
 * Sends one platform message through a OneBot bot. The calls are made here and not by the adapter's encoder, because that
 * throws the platform's reasons away (OneBot guide, "Answers"); it encodes only what the relay does not make itself.
 *
 * @throws SendError
 */
export async function sendByOneBot(bot: Bot, target: Target, items: readonly LoadedItem[], attempt: Attempt): Promise<Receipt> {
  const channelId = target.kind === 'private' ? `private:${target.id}` : target.id
  const elements = items.map(toElement)
  const session = await announceSend(bot, target, channelId, elements)
  const request = requestOf(bot)
  if (!request) throw new SendError('unsent')

  attempt.begin()
  const call = toCall(target, items, elements, session.elements ?? [])
  if (!call) return encode(bot, channelId, session)
  const answer = await request(call.action, call.params)
  if (!isObject(answer)) throw new SendError('unanswered')
  const receipt = readAnswer(answer)
  announceSent(bot, session, receipt.messageIds[0] ?? '')
  return receipt
}

type Request = (action: string, params: JsonObject) => unknown

/** The adapter's way to a whole answer; it is there only while the bot is connected. */
function requestOf(bot: Bot): Request | undefined {
  const internal: unknown = bot.internal
  if (typeof internal !== 'object' || internal === null) return
  const request: unknown = Reflect.get(internal, '_request')
  if (typeof request !== 'function') return
  return (action, params): unknown => Reflect.apply(request, internal, [action, params])
}

interface Call {
  action: string
  params: JsonObject
}

/**
 * The action that sends these elements, `undefined` when they need the adapter's encoder.
 *
 * @param sent what other plugins made of the elements
 */
function toCall({ kind, id }: Target, items: readonly LoadedItem[], elements: readonly h[], sent: readonly h[]): Call | undefined {
  const to = kind === 'group' ? { group_id: toNumber(id) } : { user_id: toNumber(id) }
  const file = items.find((item): item is LoadedMedia => item.type === 'file')
  if (!file) {
    const message = toSegments(sent)
    return message && { action: kind === 'group' ? 'send_group_msg' : 'send_private_msg', params: { ...to, message } }
  }
  if (sent.length !== 1 || sent[0] !== elements[0]) return
  return {
    action: kind === 'group' ? 'upload_group_file' : 'upload_private_file',
    params: { ...to, file: file.path ?? toFile(file.src), name: file.name },
  }
}

/** Implementations differ in whether they take IDs as text; a number they all take, as far as it is exact. */
function toNumber(id: string): number | string {
  const number = Number(id)
  return Number.isSafeInteger(number) ? number : id
}
