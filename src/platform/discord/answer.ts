import { fieldsOf } from '../../lib/shape'
import type { CauseId } from '../../message/causes'
import { retryAfterOf, toFailure, type WebAnswer } from '../web'

/**
 * The codes with a known cause. Source: https://docs.discord.com/developers/topics/opcodes-and-status-codes#json, and for 20026
 * discord/discord-api-docs issue 2669.
 */
const codes: ReadonlyMap<unknown, CauseId> = new Map([
  [10003, 'no-such-group'], // Unknown channel.
  [10013, 'not-friend'], // Unknown user.
  [20026, 'not-permitted'], // Flagged by the anti-spam system.
  [40001, 'logged-out'], // Unauthorized. Provide a valid token and try again.
  [40002, 'not-permitted'], // You need to verify your account.
  [40333, 'not-permitted'], // Cloudflare blocks the request, at times by mistake: germanoeich/nirn-proxy issue 14.
  [50001, 'no-such-group'], // Missing access: the bot does not see the channel, or is not in its server.
  [50006, 'empty'], // Cannot send an empty message.
  [50007, 'blocked'], // Cannot send messages to this user, who has blocked the bot.
  [50013, 'forbidden'], // You lack permissions to perform that action.
  [50014, 'logged-out'], // Invalid authentication token provided.
  [50033, 'not-friend'], // Invalid recipients.
  [50083, 'forbidden'], // The thread is archived and locked: sending opens one that is only archived.
  [50278, 'not-friend'], // Cannot send messages to this user due to having no mutual guilds.
  [160005, 'forbidden'], // Thread is locked.
])

/**
 * Codes of passing failures that come with the status of a refusal and without a wait: direct messages opened too fast (as in
 * davidhozic/discord-advertisement-framework issue 82), sending or a feature disabled for a while, an overloaded resource.
 */
const passing: ReadonlySet<unknown> = new Set([40003, 40004, 40006, 130000])

/** The wait after these codes, in milliseconds. Earlier calls count as invalid, or as spam. */
const usualWait = 60_000

/**
 * The body of a success.
 *
 * @param isSpecial whether the call has files or changes a message: a missing permission may then be for that only
 * @throws SendError for anything but a success
 */
export function read({ status, body, headers }: WebAnswer, isSpecial = false): unknown {
  if (status >= 200 && status < 300) return body
  const { code, message, errors, retry_after: wait, global } = fieldsOf(body)
  const causeId = codes.get(code) ?? (status === 401 ? 'logged-out' : undefined)
  const words = [message, detailOf(errors)].filter(text => typeof text === 'string').join(': ')
  if (passing.has(code) && status >= 400 && status < 429) throw toFailure(status, { words, scope: 'chat', wait: usualWait })
  if (status !== 429) throw toFailure(status, { words, causeId: isSpecial && causeId === 'forbidden' ? undefined : causeId })
  // A limit counts for the channel in the path, unless it is global. An answer of another form comes from Cloudflare, which bans addresses.
  // Source: https://docs.discord.com/developers/topics/rate-limits#exceeding-a-rate-limit
  const isWide = body === undefined || global === true || headers.get('x-ratelimit-scope') === 'global'
  throw toFailure(status, { words, scope: isWide ? 'account' : 'chat', wait: Number(wait) * 1000 || retryAfterOf(headers) })
}

/** How long a channel is limited after a success, in milliseconds. Source: the headers described on the same page. */
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
