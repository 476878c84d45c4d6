import { isObject } from '../../message/parse'
import { cleanWording } from '../failure'
import { SendError, type Receipt } from '../port'
import { toId } from './message'

/** Texts with which implementations leave open whether the message arrived: NapCat the first, go-cqhttp the second. */
const uncertain = /Timeout: NTEvent|SEND_MSG_API_ERROR/i
/** LuckyLilliaBot: the platform took the message, only its echo was not seen. */
const accepted = /waitForSelfEcho timeout/i
/** Texts that are about the group or the account, not about the message. */
const aboutTarget = new RegExp([
  'GROUP_NOT_FOUND', 'no such (?:group|user|friend)', '群聊?(?:不存在|已解散)',
  'muted', '禁言',
  'not (?:a )?(?:group )?member', 'not in the group', '不在(?:该)?群', '被移出', '被踢',
  'not (?:a )?friend', '非好友', '不是好友',
].join('|'), 'i')

/** Lagrange: `120` is a muted group; `9000` and `9057` leave open whether the message arrived. */
const mutedCode = 120
const uncertainCodes = new Set<unknown>([9000, 9057])

/**
 * Reads the whole answer of a OneBot implementation to a send. What the codes and texts mean is read from the sources of
 * NapCat, LuckyLilliaBot, Lagrange.OneBot and go-cqhttp.
 *
 * An answer that is neither a clear yes nor a clear no is none. In OneBot 11 `status` and `retcode` say the same twice: `ok` and 0, `async`
 * and 1, or `failed` and another number. A yes or no is clear when `retcode` is a number and `status`, where there is one, does not say
 * otherwise. Only with `failed` is 1 a no: Lagrange answers so to a failed upload.
 * Source: https://github.com/botuniverse/onebot-11/blob/master/communication/http.md
 *
 * @throws SendError with what is known about whether the message arrived
 */
export function readAnswer(answer: unknown): Receipt {
  if (!isObject(answer)) throw new SendError('unanswered', 'the answer of the platform cannot be read')
  const { retcode, data } = answer
  const status = answer.status ?? ''
  if (retcode === 0 && (status === 'ok' || status === '')) return { messageIds: messageIdsOf(data) }
  if (status === 'async') throw new SendError('unanswered', 'the platform carries it out later and does not tell how that ends')
  const isNo = Number.isInteger(retcode) && retcode !== 0 && (status === 'failed' || (status === '' && retcode !== 1))
  if (!isNo) throw new SendError('unanswered', 'the answer of the platform cannot be read')
  // go-cqhttp has the name of the error in one field and its explanation in another; NapCat says the same in both.
  const texts = [answer.wording, answer.message, answer.msg].flatMap(text => typeof text === 'string' && text !== '' ? [text] : [])
  const text = texts.join('\n')
  if (accepted.test(text)) return { messageIds: [] }
  const wording = cleanWording(texts[0] ?? '') ?? `retcode ${String(retcode)}`
  if (uncertain.test(text) || uncertainCodes.has(retcode)) throw new SendError('unanswered', wording)
  throw new SendError('refused', wording, { isAboutTarget: retcode === mutedCode || aboutTarget.test(text) })
}

function messageIdsOf(data: unknown): string[] {
  const id = isObject(data) ? toId(data.message_id) : undefined
  return id === undefined ? [] : [id]
}
