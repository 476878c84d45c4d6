import { RelayError } from '../errors'
import { causes, type CauseId } from '../message/causes'
import type { Target } from '../message/model'
import { quietUntil, timeOfDay } from '../message/quiet'
import { longestLimit, type Account, type Closure, type SendError } from '../platform/port'
import { inTime } from './clock'
import { digestOf, type Delivery, type Hold } from './delivery'
import type { Flow } from './flow'
import type { Limits } from './limits'
import type { RunningOptions } from './options'

/** What a lane is to its gate. */
export interface Gated {
  readonly name: string
  /** `platform:selfId`. */
  readonly bot: string
  readonly target: Target
}

/** Why a delivery waits although its chat is open, and until when, in milliseconds since the epoch. */
export interface Deferral { kind: 'scheduled' | 'quiet' | 'digest', until: number }

/** What is known of the chat of a lane. Times are those of the monotonic clock, in milliseconds. */
interface Gate {
  /** Failures in a row that are about the target. */
  failures: number
  /** What the last of them said. */
  reason: string | undefined
  pausedUntil: number
  lastSent: number
  /** When a message left that the next digest has to wait for, by the times of digests: a short one does not delay a long one. */
  readonly digestedAt: Map<number, number>
  hold: Hold | undefined
  heldAt: number
  /** How often the platform was asked, or the head tried, since the lane is held. */
  tries: number
  /** When that is due again. */
  nextTry: number
}

/** What is known of an account beyond what its platform says. Times as above. */
interface Standing {
  /** The calls since the last success whose messages never became visible. */
  vanished: { chat: string, at: number }[]
  arrivedAt: number
  /** It takes messages that nobody ever sees: one leaves at a time, with long waits between. */
  restriction: { since: number, next: number, spacing: number } | undefined
}

/** What outlives a reload of the plugin: gates by the names of their lanes, standings by the `sid` of bots. */
export class GateMemory {
  readonly gates = new Map<string, Gate>()
  readonly standings = new Map<string, Standing>()
}

const minute = 60_000
/** The waits before the head of a held lane is tried where nobody can tell whether the hold is over; the last one again and again. */
const tryWaits = [1 * minute, 2 * minute, 4 * minute, 8 * minute, 15 * minute] as const
/** The first wait, and the longest, before the head is tried where the platform could not be reached: that it can be again, nobody says. */
const reachAfter = { first: 1_000, longest: minute }
/** How long to wait at least, and at most, before the platform is asked again. */
const askAfter = { least: 1_000, most: 15 * minute }
/** An account is restricted after so many calls that came to nothing, in so many chats, within this time. */
const signs = { calls: 3, chats: 2, within: 10 * minute }
/** The first wait between two messages of a restricted account, and the longest. */
const spacing = { first: minute / 2, longest: 5 * minute }
/** For how long a target that failed is remembered at least. */
const leastMemory = 5 * minute
/** The longest time of a digest. */
const longestDigest = 60 * minute
/** What a caller is told at most in `Retry-After`, in seconds. */
const mostRetryAfter = 60

/**
 * What keeps lanes from sending. Each lane has a gate, and each account a standing:
 *
 * | a lane is  | because                                    | until                                                             |
 * | ---------- | ------------------------------------------ | ----------------------------------------------------------------- |
 * | resting    | a message has just left                    | its interval is over                                              |
 * | paused     | its target failed too often in a row       | `pauseFor` is over, or an operator resumes it                     |
 * | held       | the platform closed the chat for a while   | the platform says that it is open, a try succeeds, or as above    |
 * | restricted | messages of its account vanish             | one arrives; until then one of the account leaves at a time       |
 * | limited    | the platform wants fewer messages          | the time that the platform named is over                          |
 */
export class Gates {
  constructor(private readonly context: RunningOptions & { limits: Limits }, private readonly memory: GateMemory) {}

  /** How long nothing may leave from a lane, in milliseconds. */
  rest(lane: Gated): number {
    const { pausedUntil, hold, nextTry } = this.gate(lane.name)
    return Math.max(this.spacing(lane), this.limit(lane), Math.max(pausedUntil, hold ? nextTry : -Infinity) - this.context.clock.now())
  }

  /** How long until the next message of a delivery that is leaving may leave, in milliseconds. */
  spacing({ name, bot }: Gated): number {
    const next = Math.max(this.gate(name).lastSent + this.context.lane.interval, this.restrictionOf(bot)?.next ?? -Infinity)
    return Math.max(next - this.context.clock.now(), 0)
  }

  /**
   * Why a delivery would have to wait in a lane, or waits, although its chat is open; `undefined` where it would not.
   *
   * @param isAlone whether it waits for no digest
   */
  deferral(name: string, delivery: Pick<Delivery, 'flow' | 'mode' | 'summary'>, isAlone = false): Deferral | undefined {
    const { urgent, sendAt, policy, members } = delivery.flow
    const { clock } = this.context
    const wall = clock.wall()
    if (sendAt !== undefined && sendAt > wall) return { kind: 'scheduled', until: sendAt }
    if (urgent) return
    const quiet = policy?.quiet && quietUntil(policy.quiet, wall)
    if (quiet !== undefined) return { kind: 'quiet', until: quiet }
    const digest = isAlone || members ? undefined : digestOf(delivery)
    if (digest === undefined) return
    const rest = (this.memory.gates.get(name)?.digestedAt.get(digest) ?? -Infinity) + digest - clock.now()
    // A time since the epoch has no room for the fractions of the monotonic clock.
    return rest > 0 ? { kind: 'digest', until: wall + Math.ceil(rest) } : undefined
  }

  /** Deliveries have left, from which on the time of their digests counts. */
  digested(name: string, deliveries: readonly Delivery[]): void {
    const { digestedAt } = this.gate(name)
    for (const digest of deliveries.map(digestOf)) if (digest !== undefined) digestedAt.set(digest, this.context.clock.now())
  }

  /** How long a lane is paused, in milliseconds. */
  pause(name: string): number {
    return Math.max(this.gate(name).pausedUntil - this.context.clock.now(), 0)
  }

  /** Whether a lane without deliveries is still to be remembered: the next failure of a target that failed is to count. */
  isMemorable(lane: Gated): boolean {
    const { clock, lane: { pauseFor } } = this.context
    const { failures, hold, digestedAt, lastSent, pausedUntil } = this.gate(lane.name)
    const failedUntil = failures > 0 ? Math.max(lastSent, pausedUntil) + Math.max(pauseFor, leastMemory) : -Infinity
    const digestUntil = Math.max(...digestedAt.values()) + longestDigest
    return hold !== undefined || this.rest(lane) > 0 || Math.max(digestUntil, failedUntil) > clock.now()
  }

  forget(name: string): void {
    this.memory.gates.delete(name)
  }

  /** The lanes of which something is known, also since before a reload. */
  names(): string[] {
    return [...this.memory.gates.keys()]
  }

  /** What the last failure of a paused target said. */
  reason(name: string): string | undefined {
    return this.gate(name).reason
  }

  hold(name: string): Hold | undefined {
    return this.memory.gates.get(name)?.hold
  }

  /** Whether the last message to a chat was refused because of the chat, or a lane is held. */
  isShut(name: string): boolean {
    const gate = this.memory.gates.get(name)
    return gate !== undefined && (gate.hold !== undefined || gate.failures > 0)
  }

  /** What the last failure said of the lanes whose targets keep failing: they are paused, or were, and nothing has got through since. */
  failing(): Map<string, string> {
    const { gates } = this.memory
    return new Map([...gates].flatMap(([name, { failures, reason = '' }]) => failures >= this.context.lane.pauseAfter ? [[name, reason]] : []))
  }

  /** Since when each restricted account is, in milliseconds since the epoch, by its `sid`. */
  restricted(): Map<string, number> {
    return new Map([...this.memory.standings].flatMap(([bot, { restriction }]) => restriction ? [[bot, restriction.since]] : []))
  }

  isRestricted(bot: string): boolean {
    return this.restrictionOf(bot) !== undefined
  }

  /** Why a caller cannot wait in a lane now; `undefined` where it can. */
  refusal({ name, bot }: Gated): RelayError | undefined {
    const now = this.context.clock.now()
    const { hold, nextTry, pausedUntil } = this.gate(name)
    const next = this.restrictionOf(bot)?.next ?? -Infinity
    if (hold && nextTry > now) {
      const { until } = hold
      const rest = until === null ? nextTry - now : until - this.context.clock.wall()
      return later('unsent', rest, `${causes[hold.cause].en}: nothing was sent, try again later`, until)
    }
    const limit = this.limit({ name, bot })
    if (limit > longestLimit) return later('unsent', limit, `${causes['rate-limited'].en}: nothing was sent, try again later`)
    if (next > now) return later('unsent', next - now, 'messages of this account vanish, so it sends one at a time: nothing was sent')
    if (pausedUntil > now) return later('paused', pausedUntil - now)
  }

  /** A delivery leaves: no other one of a restricted account does meanwhile. */
  leaving(bot: string): void {
    const restriction = this.restrictionOf(bot)
    if (!restriction) return
    restriction.next = this.context.clock.now() + restriction.spacing
    restriction.spacing = Math.min(2 * restriction.spacing, spacing.longest)
  }

  /** A platform message has left, or could not. */
  left({ name, bot }: Gated): void {
    const now = this.context.clock.now()
    this.gate(name).lastSent = now
    const restriction = this.restrictionOf(bot)
    if (restriction) restriction.next = now + restriction.spacing
  }

  /** Something has arrived. */
  arrived({ name, bot }: Gated): void {
    this.gate(name).failures = 0
    this.open(name)
    if (this.isRestricted(bot)) this.context.logger.info('%s', `${bot} is not restricted any more: a message has arrived`)
    this.memory.standings.set(bot, { vanished: [], arrivedAt: this.context.clock.now(), restriction: undefined })
  }

  /** A message that left then, on the monotonic clock, was taken or got no answer, and never became visible. */
  private vanished(bot: string, chat: string, leftAt: number): void {
    const { clock, logger } = this.context
    const now = clock.now()
    const standing = this.memory.standings.get(bot) ?? { vanished: [], arrivedAt: -Infinity, restriction: undefined }
    if (leftAt < standing.arrivedAt) return
    this.memory.standings.set(bot, standing)
    const vanished = standing.vanished = [...standing.vanished.filter(({ at }) => at > now - signs.within), { chat, at: now }]
    if (standing.restriction || vanished.length < signs.calls || new Set(vanished.map(each => each.chat)).size < signs.chats) return
    standing.restriction = { since: clock.wall(), next: now + spacing.first, spacing: spacing.first }
    logger.warn('%s', `${bot} is restricted: ${vanished.length} messages were taken and never seen, so it sends one at a time`)
  }

  /**
   * A send to a lane has failed.
   *
   * @param leftAt when it began, on the monotonic clock
   * @returns whether nothing leaves from the lane for a while now
   */
  failed(lane: Gated, failure: SendError, leftAt: number): boolean {
    const { name, bot } = lane
    const { clock, lane: { pauseAfter, pauseFor }, observer } = this.context
    const gate = this.gate(name)
    const { causeId, about } = failure.last
    if (failure.causeId === 'swallowed' || failure.causeId === 'vanished') this.vanished(bot, name, leftAt)
    // Whatever it answers, the platform can be reached again.
    if (gate.hold?.cause === 'unreachable' && failure.last.outcome !== 'unsent') this.open(name)
    if (causeId && (about === 'chat-closed' || about === 'account')) {
      this.close(name, { cause: causeId, until: null })
      return true
    }
    if (failure.last.limit) return this.limit(lane) > longestLimit
    if (!failure.isAboutTarget && failure.outcome !== 'unanswered') return false
    gate.reason = failure.wording ?? failure.toRelayError().message
    if (++gate.failures < pauseAfter) return false
    // From here on each failure, also that of a single probe, prolongs the pause.
    gate.pausedUntil = clock.now() + pauseFor
    observer.paused()
    return true
  }

  /** The platform has closed a chat, or refused because it is closed. */
  close(name: string, { cause, until }: Closure): void {
    const { clock, logger } = this.context
    const gate = this.gate(name)
    if (!gate.hold) {
      Object.assign(gate, { tries: 0, heldAt: clock.now() })
      logger.info('%s', `${name} is held: ${causes[cause].en}`)
    }
    gate.hold = { cause, since: gate.hold?.since ?? clock.wall(), until }
    gate.nextTry = until === null ? clock.now() + waitFor(cause, gate.tries) : this.due(until)
  }

  /** Ends a hold. */
  open(name: string): void {
    const gate = this.gate(name)
    if (gate.hold) this.context.logger.info('%s', `${name} is not held any more`)
    gate.hold = undefined
  }

  /**
   * An account is online again: what was held because of it may leave. Where that has failed before, its platform says so wrongly, and the
   * waits go on.
   */
  online(bot: string): void {
    for (const [name, gate] of this.memory.gates) {
      const isHeld = gate.hold && !this.isAboutChat(name) && name.startsWith(`${bot}/`)
      if (isHeld && (gate.tries === 0 || gate.hold?.cause === 'unreachable')) gate.nextTry = this.context.clock.now()
    }
  }

  /** An operator ends what keeps a lane from sending. */
  resume(name: string): void {
    this.open(name)
    Object.assign(this.gate(name), { failures: 0, reason: undefined, pausedUntil: -Infinity })
  }

  /**
   * Whether the head of a lane may be tried. Where its chat is closed, the platform is asked first.
   *
   * @param isLeft whether it is from before a restart, after which that is not known of a chat that nothing has left for yet
   */
  async mayTry(lane: Gated, account: Account, isLeft = false): Promise<boolean> {
    const gate = this.gate(lane.name)
    if (gate.hold) gate.tries++
    const isUnknown = isLeft && gate.lastSent === -Infinity
    return !(isUnknown || this.isAboutChat(lane.name)) || await this.ask(lane, account)
  }

  /** Whether the hold of an empty lane may be forgotten: its time is over, nothing was tried there for long, or a try will tell. */
  isOld(name: string): boolean {
    const { clock } = this.context
    const { hold, heldAt, lastSent } = this.gate(name)
    if (hold?.cause === 'unreachable') return true
    return hold?.until ? hold.until <= clock.wall() : clock.now() - Math.max(heldAt, lastSent) >= 2 * askAfter.most
  }

  /**
   * Asks the platform whether a chat is closed, and holds its lane if so.
   *
   * @returns whether the chat may be open: also where the platform cannot tell, or does not do so in the time of a call
   */
  async ask({ name, target }: Gated, account: Account): Promise<boolean> {
    const { clock, policy: { timeout }, stop } = this.context
    const state = account.closure && await inTime(clock, account.closure(target).catch(() => undefined), timeout, stop)
    if (!state || state === 'open') return true
    this.close(name, state)
    return false
  }

  /** For how long the platform wants nothing more, in milliseconds. */
  limit({ name, bot }: Pick<Gated, 'name' | 'bot'>): number {
    return this.context.limits.rest(bot, name)
  }

  /** Whether a lane is held because its chat is closed, and not because of its account. */
  isAboutChat(name: string): boolean {
    const hold = this.hold(name)
    return hold !== undefined && causes[hold.cause].about === 'chat-closed'
  }

  /** When to ask again where a hold ends at a time in milliseconds since the epoch. */
  private due(until: number): number {
    const { clock } = this.context
    return clock.now() + Math.min(Math.max(until - clock.wall(), askAfter.least), askAfter.most)
  }

  private gate(name: string): Gate {
    const { gates } = this.memory
    const known = gates.get(name)
    if (known) return known
    const gate: Gate = {
      failures: 0, reason: undefined, pausedUntil: -Infinity, lastSent: -Infinity, digestedAt: new Map(),
      hold: undefined, heldAt: -Infinity, tries: 0, nextTry: -Infinity,
    }
    gates.set(name, gate)
    return gate
  }

  private restrictionOf(bot: string): Standing['restriction'] {
    return this.memory.standings.get(bot)?.restriction
  }
}

/** Why a delivery waits although its chat is open, in plain English. */
export function reasonOf({ kind, until }: Deferral, { policy }: Flow): string {
  if (kind === 'scheduled') return 'it was ordered for later'
  return kind === 'digest' ? 'it waits for the next digest' : `quiet hours until ${timeOfDay(until, policy?.quiet?.zone ?? 'UTC')}`
}

function waitFor(cause: CauseId, tries: number): number {
  return cause === 'unreachable' ? Math.min(reachAfter.first * 2 ** tries, reachAfter.longest) : tryWaits[tries] ?? 15 * minute
}

/** A refusal that passes in so many milliseconds. */
export function later(code: 'unsent' | 'paused', ms: number, text?: string, until: number | null = null): RelayError {
  const seconds = Math.min(Math.max(Math.ceil(ms / 1000), 1), code === 'paused' ? Infinity : mostRetryAfter)
  return new RelayError(code, text, { headers: { 'retry-after': String(seconds) }, ...until !== null && { data: { held_until: new Date(until).toISOString() } } })
}
