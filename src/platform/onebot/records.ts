import { isObject, type JsonObject } from '../../message/parse'
import { SendError } from '../port'
import type { OwnMessage } from './accounts'
import { contentOfMessage } from './content'

/** What a history shows of the bot's own messages. */
export interface HistoryPage {
  own: OwnMessage[]
  /** Whether what is not on it was not sent: it reaches back far enough, and all of the bot's own messages could be read. */
  isConclusive: boolean
}

/**
 * go-cqhttp gives 20 messages whatever is asked for, the others at least that many where there are as many; all leave out
 * some, such as recalled ones. Fewer than this are all there are.
 */
const leastFullPage = 15

const unknownActionCodes = new Set<unknown>([1404, 404])
/** For implementations that have another code for it. */
const unknownAction = /不支持的?\s*(?:API|action|动作|接口)|API不存在|API_NOT_FOUND|unsupported|not supported|(?:no such|unknown) (?:api|action)/i
/** With these words NapCat and LuckyLilliaBot say that a chat holds no message at all. */
const emptyChat = /消息\S*不存在|未找到消息/

/**
 * Reads the whole answer to a question for the history of a chat (OneBot guide, "Answers").
 *
 * @param earliest before when a message cannot be the one in question, in milliseconds since the epoch
 * @returns `undefined` when there is no history to be had: the action is unknown, or its data is of a form unknown here, which
 *   asking again would not change
 * @throws SendError `unanswered` for any other failure: it may be a passing one, and must not be taken for "no history"
 */
export function readHistory(answer: unknown, selfId: string, earliest: number): HistoryPage | undefined {
  if (!isObject(answer) || typeof answer.retcode !== 'number') return
  if (answer.retcode !== 0) return readFailure(answer)
  const messages = isObject(answer.data) ? answer.data.messages : undefined
  if (!Array.isArray(messages)) return
  // LuckyLilliaBot has `null` in the place of what it leaves out.
  const entries = messages.filter(isObject)
  const own = entries.filter(entry => isOwn(entry, selfId)).map(readOwn)
  const readable = own.filter(message => message !== undefined)
  const reachesBack = messages.length < leastFullPage || entries.some(entry => readTime(entry) < earliest)
  return { own: readable, isConclusive: reachesBack && readable.length === own.length }
}

function readFailure({ retcode, wording, message, msg }: JsonObject): HistoryPage | undefined {
  const text = [wording, message, msg].filter(part => typeof part === 'string').join('\n')
  if (unknownActionCodes.has(retcode) || unknownAction.test(text)) return
  if (emptyChat.test(text)) return { own: [], isConclusive: true }
  throw new SendError('unanswered')
}

/** Whether the bot's own account sent a message, be it here or by another device. */
export function isOwn(message: JsonObject, selfId: string): boolean {
  const { sender, user_id: userId } = message
  return toId((isObject(sender) ? sender.user_id : undefined) ?? userId) === selfId
}

/** Reads a message of an event or a history; `undefined` when it lacks an ID, a time or a content. */
export function readOwn(message: JsonObject): OwnMessage | undefined {
  const id = toId(message.message_id)
  const time = readTime(message)
  const content = contentOfMessage(message.message)
  return id !== undefined && !Number.isNaN(time) && content ? { id, time, content } : undefined
}

/** An ID as text. Those of messages may be negative. */
export function toId(value: unknown): string | undefined {
  return typeof value === 'number' || (typeof value === 'string' && value !== '') ? String(value) : undefined
}

/** In milliseconds since the epoch, NaN when there is none. */
function readTime({ time }: JsonObject): number {
  return typeof time === 'number' || typeof time === 'string' ? Number(time) * 1000 : NaN
}
