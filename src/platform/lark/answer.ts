import { fieldsOf, type JsonObject } from '../../lib/shape'
import type { CauseId } from '../../message/causes'
import type { Target } from '../../message/model'
import type { Limit, SendError } from '../port'
import { toFailure, unreadable, type WebAnswer } from '../web'

/*
 * Answers of Feishu and Lark: `{ code, msg, data }`, with the code 0 for success. The codes are those of the pages "Send message"
 * (https://open.feishu.cn/document/server-docs/im-v1/message/create), "Reply" (…/im-v1/message/reply), "Upload image" (…/im-v1/image/create)
 * and "Upload file" (…/im-v1/file/create), and of the general list (https://open.feishu.cn/document/ukTMukTMukTM/ugjM14COyUjL4ITN).
 */

/** Codes by their cause. */
type CauseTable<K = CauseId> = readonly (readonly [meaning: K, codes: readonly number[]])[]

/**
 * For a new message: the chat is external, of another tenant or encrypted, and the app may not write there. For a change: 230027 if such a
 * chat allows none, 230075 if it is too late (https://open.feishu.cn/document/server-docs/im-v1/message/update).
 */
const newCauses: CauseTable = [['forbidden', [230027, 230038, 230075]]]

const groupCauses: CauseTable = [
  // The bot is out of the chat; the chat, or the topic, is invalid, dissolved, or does not exist.
  ['no-such-group', [10002, 230002, 230019, 230034, 232009, 99992355, 99992356]],
  // The settings of the group do not allow it.
  ['all-muted', [230018, 230035]],
]

/** The subject of a call: a chat, or a topic of a group. */
export type Subject = Target['kind'] | 'topic'

const chatCauses: Readonly<Record<Subject, CauseTable>> = {
  group: groupCauses,
  private: [
    // The user does not exist, or is known to another app or tenant.
    ['not-friend', [230034, 99992351, 99992352, 99992353, 99992359, 99992360, 99992361, 99992363, 99992364, 99992381]],
    ['blocked', [230035]],
  ],
  topic: [
    // Its first message was recalled or deleted, or the bot cannot see it. 231003 is what openclaw pull request 27614 has met.
    ['no-such-group', [230011, 230050, 230110, 231003, 99992354]],
    ...groupCauses,
  ],
}

const commonCauses: CauseTable = [
  // The bot is not available to the user, or the user has resigned. A private chat can also be named by its `oc_…`.
  ['not-friend', [230013, 230029]],
  // The user has stopped the bot from sending messages.
  ['blocked', [230053]],
  ['too-long', [230025]],
  // The file is empty, too large, of another type than the message, or no picture that can be read.
  ['media-failed', [230055, 234001, 234006, 234010, 234011, 234039]],
  // The token is missing, or invalid.
  ['logged-out', [99991661, 99991663, 99991664, 99991665, 99991668, 99991671]],
  // The app is no bot, not in use, lacks a scope, is called from an address that it denies, or has used up its quota for the month.
  ['not-permitted', [230006, 234007, 99991401, 99991403, 99991662, 99991672, 99991673]],
]

/** Codes of rate limits, by scope. */
const limits: CauseTable<Limit['scope']> = [['account', [99991400, 11232, 11247]], ['chat', [11233, 230020]]]

/** The wait if the platform gives none, in milliseconds: a chat allows five messages a second, an account 1,000 calls a minute. */
const waits: Readonly<Record<Limit['scope'], number>> = { chat: 1_000, account: 5_000 }

/** The message is being sent: a repeated call with the same `uuid` returns the result. */
const beingSent: readonly unknown[] = [230049, 18121]
/** The texts of server failures, such as `internal error` (2200), which may come with any HTTP status. */
const serverFailed = /\binternal\b.*\berror\b|\bserver error\b|\btime ?out\b/i
/** The texts of 230001, the code of all wrong parameters, for a chat or user that does not exist. */
const noSuchReceiver = /invalid receive_id\b/

/**
 * Reads the data of an answer.
 *
 * @param subject the subject of the call; absent if it was not about a chat
 * @param isNew whether the call sends a new message
 * @throws SendError
 */
export function readData(answer: WebAnswer, subject?: Subject, isNew = false): JsonObject {
  const { code, data } = fieldsOf(answer.body)
  if (code === 0 && answer.status < 300) return fieldsOf(data)
  throw failureOf(answer, subject, isNew)
}

function failureOf({ status, headers, body }: WebAnswer, subject: Subject | undefined, isNew: boolean): SendError {
  const { code, msg } = fieldsOf(body)
  const scope = keyOf(limits, code) ?? (status === 429 ? 'account' : undefined)
  const words = typeof msg === 'string' && typeof code === 'number' ? `${msg} (${code})` : undefined
  if (scope) return toFailure(429, { words, scope, wait: waitOf(headers) ?? waits[scope] })
  if (typeof code !== 'number') return status < 300 ? unreadable() : toFailure(status, {})
  if (status >= 500 || beingSent.includes(code) || serverFailed.test(words ?? '')) return toFailure(500, { words })
  const named = code === 230001 && noSuchReceiver.test(words ?? '') ? 230034 : code
  const tables = [...isNew ? newCauses : [], ...subject ? chatCauses[subject] : [], ...commonCauses]
  return toFailure(400, { words, causeId: keyOf(tables, named) })
}

/** The key of a code in a table. */
function keyOf<K>(table: CauseTable<K>, code: unknown): K | undefined {
  return table.find(([, codes]) => codes.includes(Number(code)))?.[0]
}

/** The wait of "Frequency control" (https://open.feishu.cn/document/ukTMukTMukTM/uUzN04SN3QjL1cDN): a header with seconds. */
function waitOf(headers: Headers): number | undefined {
  const seconds = Number(headers.get('x-ogw-ratelimit-reset') ?? undefined)
  return seconds >= 0 ? Math.max(seconds, 1) * 1000 : undefined
}
