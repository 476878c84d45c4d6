import type { Bot } from 'koishi'
import type { Target } from '../../message/model'
import { isObject, type JsonObject } from '../../message/parse'
import { classifyThrown } from '../failure'
import { SendError, type Finding, type SendsSince } from '../port'
import { requestOf, responseTimeout } from './adapter'
import { isUpload, type Content } from './content'
import { toNumber } from './message'
import { chatOf, clockTolerance, isOwn, readOwn, readTime, type OwnMessage, type OwnMessages, type Wanted } from './own-messages'

/** The account whose chats are searched; `isOnline` and `onOffline` are those of `Account`. */
export interface Searched {
  readonly bot: Bot
  readonly own: OwnMessages
  readonly isOnline: boolean
  onOffline(callback: () => void): () => void
}

/**
 * How many messages are asked for: usually more than are said in a chat while an answer is waited for, and not a burden; where
 * that does not reach back far enough, once more for many.
 */
const counts = [50, 500]

/**
 * Asks once whether a message of ours is in a chat: first what the platform reported by itself, then its history. A message that
 * is found is known from then on, so that an equal one is not found in its place.
 *
 * @param since when its first call was made, in milliseconds since the epoch, by the local clock
 * @param sends as in `Message.find`
 * @returns `inconclusive` when the history may not reach back to before that, an equal message in it is older than what is known, or one
 *   that nobody is known to have sent is too old by a clock that may be wrong
 * @throws SendError when the question was not answered: `unsent` without a connection, `unanswered` when it was lost, when
 *   the adapter's time was up, or when the platform failed to answer it. It says nothing about the message.
 */
export async function search(account: Searched, target: Target, content: Content, since: number, sends: SendsSince): Promise<Finding> {
  const { bot, own } = account
  const chat = chatOf(bot.selfId, target)
  const begun = since - own.step
  // The machine's clock may be set while the platform answers.
  const wanted = (): Wanted => ({ content, since: begun + own.step })
  const look = async (history: readonly OwnMessage[]): Promise<Finding | undefined> => {
    if (!own.hasCandidate(chat, wanted(), history)) return
    const message = own.take(chat, wanted(), history, await sends(wanted().since))
    if (message === 'unclear') return { kind: 'inconclusive' }
    return message && { kind: 'found', ...isUpload(content) ? { messageIds: [], trace: message.id } : { messageIds: [message.id] } }
  }
  // An equal message that looks too old may be the one that is wanted, unless it is known whose it is.
  const mayBeAmong = async (messages: readonly OwnMessage[]): Promise<boolean> => {
    if (messages.length === 0) return false
    const known = await sends(Math.min(...messages.map(({ time }) => time)) - clockTolerance)
    return own.unexplained(chat, content, messages, known).length > 0
  }
  const seen = await look([])
  if (seen?.kind === 'found') return seen

  const isGroup = target.kind === 'group'
  for (const count of counts) {
    const answer = await ask(account, isGroup ? 'get_group_msg_history' : 'get_friend_msg_history', {
      [isGroup ? 'group_id' : 'user_id']: toNumber(target.id),
      count,
      // NapCat: spare it the links of all pictures and files and the insides of forwarded messages. The others ignore these.
      disable_get_url: true,
      parse_mult_msg: false,
    })
    const page = readHistory(answer, bot.selfId)
    // The report may have come while the history was asked.
    if (!page) {
      const reported = await look([])
      return reported?.kind === 'found' ? reported : { kind: 'no-history' }
    }
    const { least, most } = own.ahead(chat, page.own, page.newest)
    // As far as they surely differ by more than is borne with anyway.
    const ahead = least > clockTolerance ? least : most < -clockTolerance ? most : 0
    const history = page.own.map(message => ({ ...message, time: message.time + ahead }))
    const doubtful = own.tooOld(chat, wanted(), history, most - ahead)
    const isBefore = ({ id }: OwnMessage): boolean => own.isKnownBefore(chat, id, wanted().since)
    const reachesBack = page.oldest + ahead < wanted().since - clockTolerance || history.some(isBefore)
    const finding = await look(history)
    if (finding) return finding
    if (page.isReadable && reachesBack && !await mayBeAmong(doubtful)) return { kind: 'absent' }
  }
  return { kind: 'inconclusive' }
}

/** Makes a call. It is rejected when the adapter's time is up, and when the bot goes offline, be its connection closed or not. */
async function ask(account: Searched, action: string, params: JsonObject): Promise<unknown> {
  const request = requestOf(account.bot)
  if (!request || !account.isOnline) throw new SendError('unsent')
  let unwatch: (() => void) | undefined
  let timer: NodeJS.Timeout | undefined
  try {
    const lost = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new SendError('unanswered')), responseTimeout(account.bot))
      unwatch = account.onOffline(() => reject(new SendError('unanswered', 'the connection was lost')))
    })
    return await Promise.race([request(action, params), lost])
  } catch (error) {
    const failure = classifyThrown(error)
    // The general rule takes an error without a reason for a refusal, but nobody refuses to look.
    throw failure.outcome === 'refused' ? new SendError('unanswered', undefined, { cause: error }) : failure
  } finally {
    clearTimeout(timer)
    unwatch?.()
  }
}

/** What a history shows of the bot's own messages. */
export interface HistoryPage {
  own: OwnMessage[]
  /** The times of its oldest and its newest message, the bot's own or another's, as `OwnMessage` has them; infinite where it has none. */
  oldest: number
  newest: number
  /** Whether all of the bot's own messages on it could be read. */
  isReadable: boolean
}

const unknownActionCodes = new Set<unknown>([1404, 404])
/** For implementations that have another code for it. */
const unknownAction = /不支持的?\s*(?:API|action|动作|接口)|API不存在|API_NOT_FOUND|unsupported|not supported|(?:no such|unknown) (?:api|action)/i
/** With these words NapCat and LuckyLilliaBot say that a chat holds no message at all. */
const emptyChat = /消息\S*不存在|未找到消息/

/**
 * Reads the whole answer to a question for the history of a chat.
 *
 * @returns `undefined` when there is no history to be had: the action is unknown, or its data is of a form unknown here, which
 *   asking again would not change
 * @throws SendError `unanswered` for any other failure and for what is no answer at all: it may be a passing one, and must not be taken
 *   for "no history"
 */
export function readHistory(answer: unknown, selfId: string): HistoryPage | undefined {
  if (!isObject(answer) || typeof answer.retcode !== 'number' || answer.status === 'async') throw new SendError('unanswered')
  if (answer.retcode !== 0) return readFailure(answer)
  const messages = isObject(answer.data) ? answer.data.messages : undefined
  if (!Array.isArray(messages)) return
  // LuckyLilliaBot has `null` in the place of what it leaves out.
  const entries = messages.filter(isObject)
  const own = entries.filter(entry => isOwn(entry, selfId)).map(readOwn)
  const readable = own.filter(message => message !== undefined)
  const times = entries.map(readTime).filter(time => !Number.isNaN(time))
  const [oldest, newest] = [Math.min(...times), Math.max(...times)]
  return { own: readable, oldest, newest, isReadable: readable.length === own.length }
}

function readFailure({ retcode, wording, message, msg }: JsonObject): HistoryPage | undefined {
  const text = [wording, message, msg].filter(part => typeof part === 'string').join('\n')
  if (unknownActionCodes.has(retcode) || unknownAction.test(text)) return
  if (emptyChat.test(text)) return { own: [], oldest: Infinity, newest: -Infinity, isReadable: true }
  throw new SendError('unanswered')
}
