import { causes, explain } from '../../message/causes'
import { quietUntil } from '../../message/quiet'
import { longestLimit, type Closure, type SendError } from '../../platform/port'
import { inTime } from '../clock'
import { digestOf, type Delivery } from '../delivery/delivery'
import type { Deferral } from '../delivery/flow'
import type { Limits } from '../limits'
import type { RunningOptions } from '../options'
import type { Gated } from '../send/context'
import { offlineBlock, type Block, type Obstacle } from './obstacles'
import { say } from '../../texts/text'

/** The state of a chat. Times are those of the monotonic clock, in milliseconds. */
interface Gate {
  /** How many sends in a row have failed because of the target. */
  failures: number
  /** The last of these failures. */
  failure: SendError | undefined
  pausedUntil: number
  lastSent: number
  /** When the last message with a digest left, by the digest's interval: a short digest does not delay a long one. */
  readonly digestedAt: Map<number, number>
  hold: Hold | undefined
}

/** Why nothing is sent to a chat for a while. */
interface Hold extends Readonly<Closure> {
  /** Its start, in milliseconds since the epoch. */
  readonly since: number
  /** The same on the monotonic clock. */
  readonly begunAt: number
  /** How often the head was tried, or the platform asked. */
  tries: number
  /** When the next try is due, on the monotonic clock. */
  nextTry: number
}

/** The state of an account, as its sends show it. Times are on the monotonic clock, except `since`. */
interface Standing {
  /** The messages since the last success that never became visible. */
  vanished: { chat: string, at: number }[]
  arrivedAt: number
  /** The account accepts messages that never become visible: it sends one at a time, with long waits between them. */
  restriction: { since: number, next: number, spacing: number } | undefined
}

/** Survives a reload of the plugin: gates by queue names, standings by the `sid` of bots. */
export class GateMemory {
  readonly gates = new Map<string, Gate>()
  readonly standings = new Map<string, Standing>()
}

const minute = 60_000
/** The waits between tries of a held queue whose platform does not say when the hold ends. The last one repeats. */
const tryWaits = [1 * minute, 2 * minute, 4 * minute, 8 * minute, 15 * minute] as const
/** The first and the longest wait between tries while the platform is unreachable. The wait doubles each time. */
const reachAfter = { first: 1_000, longest: minute }
/** The least and the longest wait before the platform is asked again. */
const askAfter = { least: 1_000, most: 15 * minute }
/** An account counts as restricted after so many vanished messages, in so many chats, within this time. */
const signs = { calls: 3, chats: 2, within: 10 * minute }
/** The first wait between two messages of a restricted account, and the longest. */
const spacing = { first: minute / 2, longest: 5 * minute }
/** How long failures of a target are remembered at least. */
const leastMemory = 5 * minute
/** The longest interval of a digest. */
const longestDigest = 60 * minute
/** How often a queue looks whether its bot is online, in milliseconds. */
const lookInterval = 1_000

/**
 * Decides when queues may send. Each queue has a gate, each account a standing:
 *
 * | a queue is  | because                                    | until                                                               |
 * | ---------- | ------------------------------------------ | ------------------------------------------------------------------- |
 * | resting    | a message has just left                    | its interval is over                                                |
 * | paused     | its target failed too often in a row       | `pauseFor` is over, or an operator resumes it                       |
 * | held       | the platform closed the chat for a while   | the platform reports it open, a try succeeds, or an operator acts   |
 * | restricted | messages of its account vanish             | one arrives; until then the account sends one message at a time     |
 * | limited    | the platform limits the rate               | the time given by the platform is over                              |
 */
export class Gates {
  /** When each account may send its next message, on the monotonic clock, by its `sid`. */
  private readonly turns = new Map<string, number>()

  constructor(private readonly context: RunningOptions & { limits: Limits }, private readonly memory: GateMemory) {}

  /**
   * All that keeps a queue from sending now, in the order in which it is shown.
   *
   * A hold turns callers away until its next try is due, a rate limit only if it is long: they wait for a short one.
   */
  obstacles(queue: Pick<Gated, 'name' | 'bot'>): Obstacle[] {
    const { clock, limits, port } = this.context
    const { hold, pausedUntil = -Infinity, failure } = this.memory.gates.get(queue.name) ?? {}
    const [now, wall] = [clock.now(), clock.wall()]
    const found: Obstacle[] = []
    const add = (rest: number, block?: Block, turnsAway = rest > 0): void => void found.push({ rest, block, turnsAway })
    if (hold) add(hold.nextTry - now, { state: 'held', cause: hold.cause, reason: explain(hold.cause), since: hold.since, until: hold.until })
    if (pausedUntil > now) add(pausedUntil - now, { state: 'paused', cause: 'paused', reason: failure?.reason ?? say('nothing-sent-this-time'), until: wall + pausedUntil - now })
    // An event announces that the bot is online; the interval is for lost events.
    const offline = offlineBlock(port.find(queue.bot))
    if (offline) add(lookInterval, offline)
    const limit = limits.rest(queue.name)
    if (limit > 0) add(limit, { state: 'limited', cause: 'rate-limited', reason: explain('rate-limited'), until: wall + limit }, limit > longestLimit)
    const restriction = this.restrictionOf(queue.bot)
    const wait = (restriction?.next ?? -Infinity) - now
    const cause = 'restricted-account'
    if (wait > 0) add(wait, { state: 'limited', cause, reason: explain(cause), since: restriction?.since, until: wall + wait })
    add(this.spacing(queue), undefined, false)
    return found
  }

  /** The time until the next message of the present delivery may leave, in milliseconds. */
  spacing({ name, bot }: Pick<Gated, 'name' | 'bot'>): number {
    const { clock, queue: { interval } } = this.context
    const { lastSent = -Infinity } = this.memory.gates.get(name) ?? {}
    const next = Math.max(lastSent + interval, this.turns.get(bot) ?? -Infinity, this.restrictionOf(bot)?.next ?? -Infinity)
    return Math.max(next - clock.now(), 0)
  }

  /** Reports that a platform message leaves: the queues of an account take turns. */
  takeTurn(bot: string): void {
    const { clock, queue: { accountInterval } } = this.context
    this.turns.set(bot, clock.now() + accountInterval)
  }

  /**
   * What a delivery has to wait for although its chat is open; `undefined` if it is due.
   *
   * @param isAlone whether it leaves without a digest
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
    // Times since the epoch are whole milliseconds; those of the monotonic clock are not.
    return rest > 0 ? { kind: 'digest', until: wall + Math.ceil(rest) } : undefined
  }

  /** Starts the digest intervals of deliveries that have left. */
  digested(name: string, deliveries: readonly Delivery[]): void {
    const { digestedAt } = this.gate(name)
    for (const digest of deliveries.map(digestOf)) if (digest !== undefined) digestedAt.set(digest, this.context.clock.now())
  }

  /** Whether an empty queue must be kept, for example to count the next failure of its target. */
  isMemorable(queue: Gated): boolean {
    const { clock, queue: { pauseFor } } = this.context
    const { failures, hold, digestedAt, lastSent, pausedUntil } = this.gate(queue.name)
    const failedUntil = failures > 0 ? Math.max(lastSent, pausedUntil) + Math.max(pauseFor, leastMemory) : -Infinity
    const digestUntil = Math.max(...digestedAt.values()) + longestDigest
    return hold !== undefined || this.spacing(queue) > 0 || Math.max(digestUntil, failedUntil) > clock.now()
  }

  forget(name: string): void {
    this.memory.gates.delete(name)
  }

  /** The names of all known queues, including those from before a reload. */
  names(): string[] {
    return [...this.memory.gates.keys()]
  }

  hold(name: string): Hold | undefined {
    return this.memory.gates.get(name)?.hold
  }

  /** Whether a queue is held, or the last message failed because of the chat. */
  isShut(name: string): boolean {
    const gate = this.memory.gates.get(name)
    return gate !== undefined && (gate.hold !== undefined || gate.failures > 0)
  }

  /** The queues that reached the pause limit with no success since, with the last failure. */
  failing(): Map<string, SendError> {
    const { memory: { gates }, context: { queue: { pauseAfter } } } = this
    return new Map([...gates].flatMap(([name, { failures, failure }]) => failure && failures >= pauseAfter ? [[name, failure]] : []))
  }

  /** Since when each restricted account is, in milliseconds since the epoch, by its `sid`. */
  restricted(): Map<string, number> {
    return new Map([...this.memory.standings].flatMap(([bot, { restriction }]) => restriction ? [[bot, restriction.since]] : []))
  }

  isRestricted(bot: string): boolean {
    return this.restrictionOf(bot) !== undefined
  }

  /** Reports that a delivery leaves: a restricted account sends no other one meanwhile. */
  leaving(bot: string): void {
    this.takeTurn(bot)
    const restriction = this.restrictionOf(bot)
    if (!restriction) return
    restriction.next = this.context.clock.now() + restriction.spacing
    restriction.spacing = Math.min(2 * restriction.spacing, spacing.longest)
  }

  /** Reports that a platform message has left, or could not. */
  left({ name, bot }: Gated): void {
    const now = this.context.clock.now()
    this.gate(name).lastSent = now
    const restriction = this.restrictionOf(bot)
    if (restriction) restriction.next = now + restriction.spacing
  }

  /** Reports that a message has arrived. */
  arrived({ name, bot }: Gated): void {
    this.gate(name).failures = 0
    this.open(name)
    if (this.isRestricted(bot)) this.context.logger.info(say('restriction-over', { bot }))
    this.memory.standings.set(bot, { vanished: [], arrivedAt: this.context.clock.now(), restriction: undefined })
  }

  /** Notes that a message did not become visible. `leftAt` is its time on the monotonic clock. */
  private vanished(bot: string, chat: string, leftAt: number): void {
    const { clock, logger } = this.context
    const now = clock.now()
    const standing = this.memory.standings.get(bot) ?? { vanished: [], arrivedAt: -Infinity, restriction: undefined }
    if (leftAt < standing.arrivedAt) return
    this.memory.standings.set(bot, standing)
    const vanished = standing.vanished = [...standing.vanished.filter(({ at }) => at > now - signs.within), { chat, at: now }]
    if (standing.restriction || vanished.length < signs.calls || new Set(vanished.map(each => each.chat)).size < signs.chats) return
    standing.restriction = { since: clock.wall(), next: now + spacing.first, spacing: spacing.first }
    logger.warn(say('restriction-begun', { bot, count: vanished.length }))
  }

  /**
   * Reports that a send has failed.
   *
   * @param leftAt when the send began, on the monotonic clock
   * @returns whether this closes the queue
   */
  failed(queue: Gated, failure: SendError, leftAt: number): boolean {
    const { name, bot } = queue
    const { clock, queue: { pauseAfter, pauseFor }, limits, observer } = this.context
    const gate = this.gate(name)
    const { causeId, about } = failure.last
    if (failure.causeId === 'swallowed' || failure.causeId === 'vanished') this.vanished(bot, name, leftAt)
    // Any answer shows that the platform can be reached.
    if (gate.hold?.cause === 'unreachable' && failure.last.outcome !== 'unsent') this.open(name)
    if (causeId && (about === 'chat-closed' || about === 'account')) {
      this.close(name, { cause: causeId, until: null })
      return true
    }
    if (failure.last.limit) return limits.rest(name) > longestLimit
    if (!failure.isAboutTarget && failure.outcome !== 'unanswered') return false
    gate.failure = failure
    if (++gate.failures < pauseAfter) return false
    // After the limit, every further failure starts the pause anew.
    gate.pausedUntil = clock.now() + pauseFor
    observer.paused()
    return true
  }

  /** Holds a queue. */
  close(name: string, closure: Closure): void {
    const { clock, logger } = this.context
    const gate = this.gate(name)
    if (!gate.hold) logger.info(say('queue-held', { queue: name, reason: explain(closure.cause) }))
    const [now, wall] = [clock.now(), clock.wall()]
    const { since, begunAt, tries } = gate.hold ?? { since: wall, begunAt: now, tries: 0 }
    gate.hold = { ...closure, since, begunAt, tries, nextTry: now + waitFor(closure, tries, wall) }
  }

  /** Ends a hold. */
  open(name: string): void {
    const gate = this.gate(name)
    if (gate.hold) this.context.logger.info(say('queue-not-held', { queue: name }))
    gate.hold = undefined
  }

  /**
   * Lets a queue try that is held because of its account, which is online again. If nothing waits in it, the hold ends. Some platforms
   * report a dead account as online: a queue that has tried in vain keeps its waits, and one that was away for a moment keeps its hold.
   */
  online(name: string, isEmpty: boolean): void {
    const hold = this.hold(name)
    const now = this.context.clock.now()
    if (!hold || this.isAboutChat(name) || (hold.tries > 0 && hold.cause !== 'unreachable')) return
    if (isEmpty && now - hold.begunAt >= minute) this.open(name)
    else hold.nextTry = now
  }

  /** Ends the pause and the hold of a queue for an operator. */
  resume(name: string): void {
    this.open(name)
    Object.assign(this.gate(name), { failures: 0, failure: undefined, pausedUntil: -Infinity })
  }

  /**
   * Whether a queue may try its head. The platform is asked first if its chat is closed.
   *
   * @param isLeft whether the head is from before a restart: then the platform is asked before the first send to the chat
   */
  async mayTry(queue: Gated, isLeft = false): Promise<boolean> {
    const { hold, lastSent } = this.gate(queue.name)
    if (hold) hold.tries++
    const isUnknown = isLeft && lastSent === -Infinity
    return !(isUnknown || this.isAboutChat(queue.name)) || await this.ask(queue) !== 'closed'
  }

  /** Whether the hold of an empty queue may end: its time is over, nothing was tried for long, or the next send finds out. */
  isOld(name: string): boolean {
    const { clock } = this.context
    const { hold, lastSent } = this.gate(name)
    if (!hold || hold.cause === 'unreachable') return true
    return hold.until ? hold.until <= clock.wall() : clock.now() - Math.max(hold.begunAt, lastSent) >= 2 * askAfter.most
  }

  /**
   * Asks the platform whether a chat is closed, and holds its queue if so.
   *
   * @returns `undefined` if the platform cannot tell, or does not answer within the time of a call
   */
  async ask({ name, bot, target }: Gated): Promise<'open' | 'closed' | undefined> {
    const { clock, policy: { timeout }, port, stop } = this.context
    const account = port.find(bot)
    const state = account?.closure && await inTime(clock, account.closure(target).catch(() => undefined), timeout, stop)
    if (!state || state === 'open') return state
    this.close(name, state)
    return 'closed'
  }

  /** Whether a queue is held because of its chat, and not because of its account. */
  isAboutChat(name: string): boolean {
    const hold = this.hold(name)
    return hold !== undefined && causes[hold.cause] === 'chat-closed'
  }

  private gate(name: string): Gate {
    const { gates } = this.memory
    const known = gates.get(name)
    if (known) return known
    const gate: Gate = {
      failures: 0, failure: undefined, pausedUntil: -Infinity, lastSent: -Infinity, digestedAt: new Map(), hold: undefined,
    }
    gates.set(name, gate)
    return gate
  }

  private restrictionOf(bot: string): Standing['restriction'] {
    return this.memory.standings.get(bot)?.restriction
  }
}

/** The wait before a held queue tries again, in milliseconds. */
function waitFor({ cause, until }: Closure, tries: number, wall: number): number {
  if (until !== null) return Math.min(Math.max(until - wall, askAfter.least), askAfter.most)
  return cause === 'unreachable' ? Math.min(reachAfter.first * 2 ** tries, reachAfter.longest) : tryWaits[tries] ?? 15 * minute
}
