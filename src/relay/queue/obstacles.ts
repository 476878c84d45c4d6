import { RelayError } from '../../errors'
import { explain, type CauseId } from '../../message/causes'
import { timeOfDay } from '../../message/quiet'
import type { Account } from '../../platform/port'
import type { Deferral, Flow } from '../delivery/flow'
import { clauses, say, type Text } from '../../texts/text'

/** Something that keeps a queue from sending now. */
export interface Obstacle {
  /** After how many milliseconds the queue may try again. */
  readonly rest: number
  /** As it is shown; absent for the interval between messages. */
  readonly block: Block | undefined
  /** Whether callers are refused instead of waiting. */
  readonly turnsAway: boolean
}

/** Why a queue sends nothing for now. Times are in milliseconds since the epoch. */
export type Block = BlockCause & {
  readonly reason: Text
  /** Since when, if that is known. */
  readonly since?: number | undefined
  /** When it ends; `null` if that is not known. */
  readonly until: number | null
}

type BlockCause
  /** The platform has closed the chat for a while, or limits the rate, or hides the messages of the account. */
  = | { readonly state: 'held' | 'limited', readonly cause: CauseId }
    /** The target failed too often. */
    | { readonly state: 'paused', readonly cause: 'paused' }
    | { readonly state: 'offline', readonly cause: 'offline' }

/** The longest `Retry-After` of a hold, in seconds. */
const mostRetryAfter = 60

/** The block of an account that is not online; `undefined` for one that is. */
export function offlineBlock(account: Account | undefined): Block | undefined {
  if (!account) return { state: 'offline', cause: 'offline', reason: say('no-such-bot'), until: null }
  if (account.isOnline) return
  const { cause, words, since } = account.health
  return { state: 'offline', cause: 'offline', reason: explain(cause, words) ?? say('no-bot-online'), since, until: null }
}

/** The time until none of these obstacles is left, in milliseconds. */
export function restOf(obstacles: readonly Obstacle[]): number {
  return Math.max(0, ...obstacles.map(({ rest }) => rest))
}

/** What is shown of these obstacles; `undefined` if a queue only keeps its interval. */
export function blockOf(obstacles: readonly Obstacle[]): Block | undefined {
  return obstacles.find(({ block }) => block)?.block
}

/** Why callers are refused because of these obstacles; `undefined` if they are not. */
export function refusalOf(obstacles: readonly Obstacle[], wall: number): RelayError | undefined {
  const { rest = 0, block } = obstacles.find(({ turnsAway }) => turnsAway) ?? {}
  if (!block) return
  const { state, reason, until } = block
  // The log gets the default text: the words of an adapter may contain those of a message.
  if (state === 'paused') {
    return later(state, rest).with({ said: say('paused-because', { reason }) })
  }
  const text = clauses(reason, say('nothing-sent-try-later'))
  if (state === 'offline') return new RelayError('unsent', text)
  return later('unsent', until === null ? rest : until - wall, text, state === 'held' ? until : null)
}

/** Describes a deferral. */
export function reasonOf({ kind, until }: Deferral, { policy }: Flow): Text {
  if (kind === 'scheduled') return say('ordered-for-later')
  return kind === 'digest' ? say('waits-for-digest') : say('quiet-hours-until', { time: timeOfDay(until, policy?.quiet?.zone ?? 'UTC') })
}

/** A refusal with `Retry-After`, for a state that lasts so many milliseconds. */
function later(code: 'unsent' | 'paused', ms: number, text?: Text, until: number | null = null): RelayError {
  const seconds = Math.min(Math.max(Math.ceil(ms / 1000), 1), code === 'paused' ? Infinity : mostRetryAfter)
  return new RelayError(code, text, { headers: { 'retry-after': String(seconds) }, ...until !== null && { details: { held_until: new Date(until).toISOString() } } })
}
