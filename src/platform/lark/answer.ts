import type { CauseId } from '../../message/causes'
import type { Target } from '../../message/model'
import { fieldsOf, type JsonObject } from '../../message/parse'
import type { Limit, SendError } from '../port'
import { toFailure, unreadable, type WebAnswer } from '../web'

/*
 * Answers of Feishu and Lark: `{ code, msg, data }`, with the code 0 for success. The codes are those of the pages "Send message"
 * (https://open.feishu.cn/document/server-docs/im-v1/message/create), "Reply" (…/im-v1/message/reply), "Upload image" (…/im-v1/image/create)
 * and "Upload file" (…/im-v1/file/create), and of the general list (https://open.feishu.cn/document/ukTMukTMukTM/ugjM14COyUjL4ITN).
 */

type CauseTable = ReadonlyMap<number, CauseId>

const chatCauses: Readonly<Record<Target['kind'], CauseTable>> = {
  group: new Map([
    [10002, 'no-such-group'], // Bot can NOT be out of the chat
    [230002, 'no-such-group'], // The bot can not be outside the group.
    [230034, 'no-such-group'], // The receive_id is invalid
    [232009, 'no-such-group'], // Your request specifies a chat which has already been dissolved.
    [99992355, 'no-such-group'], // these lark ids not existed: %v
    [99992356, 'no-such-group'], // these open_chat ids not existed: %v
    [230018, 'all-muted'], // These operations are NOT allowed at current group settings.
    [230035, 'all-muted'], // Send Message Permission deny.
  ]),
  private: new Map([
    [230013, 'not-friend'], // Bot has NO availability to this user.
    [230029, 'not-friend'], // User has resigned
    [230034, 'not-friend'], // The receive_id is invalid
    [99992351, 'not-friend'], // these open ids not existed: %v
    [99992352, 'not-friend'], // these lark ids not existed: %v
    [99992353, 'not-friend'], // these lark ids not existed: %v
    [99992359, 'not-friend'], // these user ids not existed: %v
    [99992360, 'not-friend'], // these ids not existed: %v
    [99992361, 'not-friend'], // open_id cross app
    [99992363, 'not-friend'], // these ids not existed: %v
    [99992364, 'not-friend'], // user id cross tenant
    [99992381, 'not-friend'], // union_id cross tenant
    [230035, 'blocked'], // Send Message Permission deny.
    [230053, 'blocked'], // The user has stopped the bot from sending messages
  ]),
}

const commonCauses: CauseTable = new Map([
  [230025, 'too-long'], // The length of the message content reaches its limit.
  [230055, 'media-failed'], // The type of file upload does not match the type of message being sent.
  [234001, 'media-failed'], // Invalid request param.
  [234006, 'media-failed'], // The file size exceed the max value.
  [234010, 'media-failed'], // File's size can't be 0.
  [234011, 'media-failed'], // Can't regonnize the image format.
  [234039, 'media-failed'], // Image resolution exceeds limit.
  [99991661, 'logged-out'], // Need a token
  [99991663, 'logged-out'], // Invalid access token for authorization. Please make a request with token attached
  [99991664, 'logged-out'], // invalid app token
  [99991665, 'logged-out'], // invalid tenant code
  [99991668, 'logged-out'], // Invalid access token for authorization. Please make a request with token attached.
  [99991671, 'logged-out'], // Invalid token: must start with t-/u-
  [230006, 'not-permitted'], // Bot ability is not activated.
  [234007, 'not-permitted'], // App does not enable bot feature.
  [99991401, 'not-permitted'], // ip %s is denied by app setting
  [99991403, 'not-permitted'], // This month's API call quota has been exceeded
  [99991662, 'not-permitted'], // app not in use
  [99991672, 'not-permitted'], // Access denied. One of the following scopes is required
  [99991673, 'not-permitted'], // unauthorized app
])

/** Limits, by whom they concern. */
const limits: ReadonlyMap<number, Limit['scope']> = new Map([
  [99991400, 'account'], // request trigger frequency limit
  [11232, 'account'], // create message service trigger rate limit
  [11247, 'account'], // internal send message trigger rate limit
  [11233, 'chat'], // create message chat trigger rate limit
  [230020, 'chat'], // This operation triggers the frequency limit.
])

/** Wait where the platform names none, in milliseconds: a chat takes five messages a second, and an account 1,000 calls a minute. */
const waits: Readonly<Record<Limit['scope'], number>> = { chat: 1_000, account: 5_000 }

/** The message is being sent: what became of it, a further call with the same `uuid` tells. */
const beingSent = 230049
/** How failures of a server read, such as `internal error` (2200). They may come with any HTTP status. */
const serverFailed = /\binternal\b.*\berror\b|\bserver error\b|\btime ?out\b/i
/** How 230001, the code of all wrong parameters, says that there is no such chat or user. */
const noSuchReceiver = /invalid receive_id\b/

/**
 * Reads the data of an answer.
 *
 * @param kind of the chat that the call was about; absent for a call that was about none
 * @throws SendError
 */
export function readData(answer: WebAnswer, kind?: Target['kind']): JsonObject {
  const { code, data } = fieldsOf(answer.body)
  if (code === 0 && answer.status < 300) return fieldsOf(data)
  throw failureOf(answer, kind)
}

function failureOf({ status, headers, body }: WebAnswer, kind: Target['kind'] | undefined): SendError {
  const { code, msg } = fieldsOf(body)
  const scope = limits.get(Number(code)) ?? (status === 429 ? 'account' : undefined)
  const words = typeof msg === 'string' && typeof code === 'number' ? `${msg} (${code})` : undefined
  if (scope) return toFailure(429, { words, limit: { scope, after: waitOf(headers) ?? waits[scope] } })
  if (typeof code !== 'number') return status < 300 ? unreadable() : toFailure(status, {})
  const isUnclear = status >= 500 || code === beingSent || serverFailed.test(words ?? '')
  return isUnclear ? toFailure(500, { words }) : toFailure(400, { words, causeId: causeOf(code, words ?? '', kind) })
}

function causeOf(code: number, words: string, kind: Target['kind'] | undefined): CauseId | undefined {
  const named = code === 230001 && noSuchReceiver.test(words) ? 230034 : code
  return (kind && chatCauses[kind].get(named)) ?? commonCauses.get(named)
}

/** What "Frequency control" has for the wait (https://open.feishu.cn/document/ukTMukTMukTM/uUzN04SN3QjL1cDN): a header with seconds. */
function waitOf(headers: Headers): number | undefined {
  const seconds = Number(headers.get('x-ogw-ratelimit-reset') ?? undefined)
  return seconds >= 0 ? Math.max(seconds, 1) * 1000 : undefined
}
