import { fieldsOf } from '../../message/parse'
import { cleanWording } from '../failure'
import { toText } from '../incoming'
import { SendError, type Receipt } from '../port'

/**
 * What a failed call means: the platform took the message; the message may have arrived; the action is unknown; the chat holds no message
 * at all; or the chat is closed to the bot.
 */
type Meaning = 'accepted' | 'uncertain' | 'unknown-action' | 'empty-chat' | 'about-target'

interface KnownFailure {
  meaning: Meaning
  codes: readonly number[]
  words: RegExp
}

/** Failures by the codes and the words of implementations, read from their sources. The first row that fits counts. */
const knownFailures: readonly KnownFailure[] = [
  // LuckyLilliaBot: the platform took the message, only its echo was not seen.
  { meaning: 'accepted', codes: [], words: /waitForSelfEcho timeout/i },
  // NapCat; go-cqhttp; the codes are those of Lagrange.
  { meaning: 'uncertain', codes: [9000, 9057], words: /Timeout: NTEvent|SEND_MSG_API_ERROR/i },
  // NapCat and LuckyLilliaBot; Lagrange and go-cqhttp; the words are for implementations with other codes.
  {
    meaning: 'unknown-action',
    codes: [1404, 404],
    words: /不支持的?\s*(?:API|action|动作|接口)|API不存在|API_NOT_FOUND|unsupported|not supported|(?:no such|unknown) (?:api|action)/i,
  },
  // NapCat; LuckyLilliaBot.
  { meaning: 'empty-chat', codes: [], words: /消息\S*不存在|未找到消息/ },
  // The code is that of Lagrange for a muted group.
  {
    meaning: 'about-target',
    codes: [120],
    words: new RegExp([
      'GROUP_NOT_FOUND', 'no such (?:group|user|friend)', '群聊?(?:不存在|已解散)',
      'muted', '禁言',
      'not (?:a )?(?:group )?member', 'not in the group', '不在(?:该)?群', '被移出', '被踢',
      'not (?:a )?friend', '非好友', '不是好友',
    ].join('|'), 'i'),
  },
]

/** Without a status the code alone counts. */
const okStatuses: ReadonlySet<unknown> = new Set(['ok', ''])
const failedStatuses: ReadonlySet<unknown> = new Set(['failed', ''])

/** A whole answer: success with data, or a failure. */
export type Answer = { isOk: true, data: unknown } | { isOk: false, meaning: Meaning | undefined, wording: string }

/**
 * Reads the whole answer to a call.
 *
 * In OneBot 11 `status` and `retcode` say the same twice: `ok` and 0, `async` and 1, or `failed` and another number. The answer counts when
 * `retcode` is a number and `status`, if present, agrees with it. Only with `failed` is 1 a failure: Lagrange answers a failed upload so.
 * Source: https://github.com/botuniverse/onebot-11/blob/master/communication/http.md
 *
 * @throws SendError `unanswered` for an answer that is neither a success nor a failure
 */
export function readAnswer(answer: unknown): Answer {
  const { status: given, retcode, data, wording, message, msg } = fieldsOf(answer)
  const status = given ?? ''
  if (status === 'async') throw new SendError('unanswered', 'the platform carries it out later and does not tell how that ends')
  if (retcode === 0 && okStatuses.has(status)) return { isOk: true, data }
  const code = Number.isInteger(retcode) ? Number(retcode) : 0
  const isFailure = code === 1 ? status === 'failed' : code !== 0 && failedStatuses.has(status)
  if (!isFailure) throw new SendError('unanswered', 'the answer of the platform cannot be read')
  // go-cqhttp has the name of the error in one field and its explanation in another; NapCat has the same text in both.
  const texts = [wording, message, msg].map(toText).filter(Boolean)
  const text = texts.join('\n')
  const known = knownFailures.find(({ codes, words }) => codes.includes(code) || words.test(text))
  return { isOk: false, meaning: known?.meaning, wording: cleanWording(texts[0] ?? '') ?? `retcode ${code}` }
}

/**
 * Reads the data of a success.
 *
 * @throws SendError `unanswered`, `refused`
 */
export function readData(answer: unknown): unknown {
  const read = readAnswer(answer)
  if (read.isOk) return read.data
  const { meaning, wording } = read
  if (meaning === 'accepted') return
  throw new SendError(meaning === 'uncertain' ? 'unanswered' : 'refused', wording, { isAboutTarget: meaning === 'about-target' })
}

/**
 * Reads the answer to a send.
 *
 * @throws SendError `unanswered`, `refused`
 */
export function readReceipt(answer: unknown): Receipt {
  const id = toId(fieldsOf(readData(answer)).message_id)
  return { messageIds: id === undefined ? [] : [id] }
}

/** An ID as text. The ID of a message may be negative. */
export function toId(value: unknown): string | undefined {
  return toText(value) || undefined
}

/** An ID as a number where that is exact: implementations differ in whether they accept a text. */
export function toNumber(id: string): number | string {
  const number = Number(id)
  return Number.isSafeInteger(number) ? number : id
}
