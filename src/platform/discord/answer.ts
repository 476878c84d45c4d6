import type { CauseId } from '../../message/causes'
import { fieldsOf } from '../../message/parse'
import type { Limit, SendError } from '../port'
import { retryAfterOf, toFailure, type WebAnswer } from '../web'

/** The codes that tell something. Source: https://docs.discord.com/developers/topics/opcodes-and-status-codes#json */
const codes: ReadonlyMap<unknown, CauseId> = new Map([
  // Unknown channel.
  [10003, 'no-such-group'],
  // Unknown user.
  [10013, 'not-friend'],
  // Unauthorized. Provide a valid token and try again.
  [40001, 'logged-out'],
  // Missing access: the bot does not see the channel, or is not in its server.
  [50001, 'no-such-group'],
  // Cannot send an empty message.
  [50006, 'empty'],
  // Cannot send messages to this user, who has blocked the bot.
  [50007, 'blocked'],
  // You lack permissions to perform that action.
  [50013, 'forbidden'],
  // Invalid authentication token provided.
  [50014, 'logged-out'],
  // Invalid recipients.
  [50033, 'not-friend'],
  // Cannot send messages to this user due to having no mutual guilds.
  [50278, 'not-friend'],
  // Thread is locked.
  [160005, 'forbidden'],
])

/** How long to wait where a limit does not say, in milliseconds. */
const defaultWait = 60_000

/**
 * Reads an answer that is no success.
 *
 * @param hasFiles whether files were in the call: what is not permitted then may be just these
 */
export function readFailure({ status, body, headers }: WebAnswer, hasFiles = false): SendError {
  const { code, message, errors } = fieldsOf(body)
  const causeId = codes.get(code) ?? (status === 401 ? 'logged-out' : undefined)
  const words = [message, detailOf(errors)].filter(text => typeof text === 'string').join(': ')
  const isOpen = hasFiles && causeId === 'forbidden'
  return toFailure(status, { words, causeId: isOpen ? undefined : causeId, limit: status === 429 ? readLimit(body, headers) : undefined })
}

/**
 * Reads how long to wait. A limit counts for the channel in the path, unless it is global; an answer of another form comes from Cloudflare,
 * which bans addresses. Source: https://docs.discord.com/developers/topics/rate-limits#exceeding-a-rate-limit
 */
function readLimit(body: unknown, headers: Headers): Limit {
  const { retry_after: wait, global } = fieldsOf(body)
  const after = wait === undefined ? retryAfterOf(headers) ?? defaultWait : Number(wait) * 1000
  const isWide = body === undefined || global === true || headers.get('x-ratelimit-scope') === 'global'
  return { scope: isWide ? 'account' : 'chat', after: after >= 0 ? after : defaultWait }
}

/** For how long a channel takes nothing more after a success, in milliseconds. Source: the headers that the same page describes. */
export function restAfter(headers: Headers): number {
  return headers.get('x-ratelimit-remaining') === '0' ? Number(headers.get('x-ratelimit-reset-after')) * 1000 || 0 : 0
}

/** The first reason in the errors of a form. Source: https://docs.discord.com/developers/reference#error-messages */
function detailOf(errors: unknown): string | undefined {
  const { _errors: list, ...fields } = fieldsOf(errors)
  const { message } = fieldsOf(Array.isArray(list) ? list[0] : undefined)
  if (typeof message === 'string') return message
  for (const field of Object.values(fields)) {
    const found = detailOf(field)
    if (found !== undefined) return found
  }
}
