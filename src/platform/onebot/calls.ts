import type { Bot, h } from 'koishi'
import type { Target } from '../../message/model'
import { isObject } from '../../message/parse'
import type { Attempt } from '../../relay/attempts'
import { toElement } from '../elements'
import { createEncoder, partlyArrived, render } from '../encoder'
import { announceSend, announceSent, createSession, type SendSession } from '../hooks'
import type { LoadedItem, LoadedMedia } from '../../relay/media'
import { SendError, type Receipt } from '../port'
import { classifyThrown } from '../failure'
import { readAnswer } from './answer'
import { recordAnswers } from './recorder'
import { requestOf, toNumber } from './request'
import { toFile, toSegments } from './segments'

/**
 * Sends one platform message through a OneBot bot. The calls are made here and not by the adapter's encoder, because that
 * throws the platform's reasons away (OneBot guide, "Answers"); it encodes only what the relay does not make itself.
 *
 * @param onSend told of the message that leaves: its segments, `null` when only the adapter knows it, `undefined` for an upload
 * @throws SendError
 */
export async function sendByOneBot(
  bot: Bot, target: Target, items: readonly LoadedItem[], attempt: Attempt, onSend: (message: unknown) => void,
): Promise<Receipt> {
  const isDirect = target.kind === 'private'
  const channelId = isDirect ? `private:${target.id}` : target.id
  const session = createSession(bot, channelId, isDirect, isDirect ? undefined : target.id)
  const elements = items.map(toElement)
  const sent = await announceSend(bot, session, elements)
  const request = requestOf(bot)
  if (!request) throw new SendError('unsent')
  attempt.begin()
  const call = toCall(target, items, elements, sent)
  onSend(call ? call.params.message : null)
  if (!call) return encode(bot, channelId, session)
  const answer = await request(call.action, call.params)
  // The adapter keeps them for a minute, in a timer that it never clears, and with them the bytes of pictures and files.
  for (const name of Object.keys(call.params)) call.params[name] = undefined
  if (!isObject(answer)) throw new SendError('unanswered')
  const receipt = readAnswer(answer)
  announceSent(bot, session, receipt.messageIds[0] ?? '')
  return receipt
}

/** Sends what other plugins made of a message with the adapter's encoder, which may make several platform messages of it. */
async function encode(bot: Bot, channelId: string, session: SendSession): Promise<Receipt> {
  const { view, answers } = recordAnswers(bot)
  const encoder = createEncoder(view, channelId)
  if (!encoder) throw new SendError('refused', 'the adapter cannot encode what another plugin made of the message')
  encoder.session = session
  await encoder.prepare()
  let failure: unknown
  await render(encoder).catch((error: unknown) => {
    failure = error
  })
  const messageIds: string[] = []
  for (const answer of answers.filter(isObject)) {
    try {
      messageIds.push(...readAnswer(answer).messageIds)
    } catch (error) {
      throw answer === answers[0] ? error : partlyArrived(error)
    }
  }
  // The adapter also throws when an answer of success holds no data; then all calls made were answered well.
  if (answers.length === 0) throw failure === undefined ? new SendError('suppressed') : classifyThrown(failure)
  const isWithoutData = failure instanceof TypeError || (failure instanceof SendError && failure.cause instanceof TypeError)
  if (failure !== undefined && !isWithoutData) throw partlyArrived(failure)
  return { messageIds }
}

interface Call {
  action: string
  params: Record<string, unknown>
}

/**
 * The action that sends these elements, `undefined` when they need the adapter's encoder.
 *
 * @param sent what other plugins made of the elements
 */
function toCall({ kind, id }: Target, items: readonly LoadedItem[], elements: readonly h[], sent: readonly h[]): Call | undefined {
  const isGroup = kind === 'group'
  const to = toNumber(id)
  const file = items.find((item): item is LoadedMedia => item.type === 'file')
  if (!file) {
    const message = toSegments(sent)
    if (!message) return
    return isGroup
      ? { action: 'send_group_msg', params: { group_id: to, message } }
      : { action: 'send_private_msg', params: { user_id: to, message } }
  }
  if (sent.length !== 1 || sent[0] !== elements[0]) return
  return {
    action: isGroup ? 'upload_group_file' : 'upload_private_file',
    params: { [isGroup ? 'group_id' : 'user_id']: to, file: file.path ?? toFile(file.src), name: file.name },
  }
}
