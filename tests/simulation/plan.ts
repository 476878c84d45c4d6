import type { Quiet, Target } from '../../src/message/model'
import { Random } from '../faults/random'
import type { CallFault, HistoryFault, PlatformOptions, Trouble } from './platform'

export interface PlannedItem {
  type: 'text' | 'image' | 'file' | 'video'
  /** The visible content. Texts and file names may be equal. */
  look: string
  /** Whether the item is a link instead of data. */
  isLink: boolean
}

/** A request of one caller. With a key, the caller repeats it until it knows the outcome. */
export interface PlannedRequest {
  name: number
  at: number
  /** The relay that gets the request. */
  host: number
  chat: number
  /** Whether the request names its bot. */
  hasBot: boolean
  mode: 'single' | 'batch'
  items: readonly PlannedItem[]
  hasKey: boolean
  event?: { lifetime?: number }
  deferred?: { wait: number }
  expiresIn?: number
  /** When the caller disconnects. */
  leaveAfter?: number
  /** The wait before each repeat. */
  repeats: readonly number[]
  wishes?: PlannedWishes
}

/** The requested time and ways of a message. */
export interface PlannedWishes {
  urgent?: true
  /** The delay between the request and the time when the message joins its queue. */
  sendIn?: number
  digest?: number
  /** In hours of the day. Every schedule begins at midnight. */
  quiet?: Quiet
  /** `ways`: the chats of the ways. */
  route?: { ways: readonly number[], after: number, whenUnknown: 'stop' | 'next' }
  /** Whether the message comes through a hook. Many late ones leave as a digest. */
  isHook?: true
}

/** An operator's action on the delivery of a request. */
export interface PlannedOperation {
  at: number
  kind: 'retry' | 'withdraw'
  request: number
}

export type Disturbance
  = | { kind: 'cut', sid: string, away: number }
    | { kind: 'restart', sid: string, away: number, kept: number }
    | { kind: 'chatter', chat: number, others: number }
    | { kind: 'mute', chat: number, ms: number, isReported: boolean, isLifted: boolean }
    | { kind: 'trouble', sid: string, what: Trouble, ms: number }
    | { kind: 'clock', host: number, by: number }
    | { kind: 'freeze', host: number, ms: number, isAsleep: boolean }
    /** The disk of the folder is full, or each flush takes so long. */
    | { kind: 'full', ms: number, hasReserve: boolean }
    | { kind: 'slow', ms: number, takes: number }
    /** The next flush fails. */
    | { kind: 'unflushed' }
    | { kind: 'unusable', ms: number }
    /** The process is killed, or loses its power, and is started again. */
    | { kind: 'kill' | 'power', host: number, away: number }
    /** The process is stopped and started again. */
    | { kind: 'stop', host: number, away: number }
    /** The plugin is loaded again in the same process: at once, or after the old instance has finished. */
    | { kind: 'reload', host: number, isAtOnce: boolean }

/** When something happens: at a time, or a while after the n-th call or commit. */
export interface Moment {
  on: 'time' | 'call' | 'commit'
  nth: number
  after: number
  what: Disturbance
}

export interface PlannedChat {
  sid: string
  target: Target
  /** How many messages others have written before. */
  before: number
  calls: readonly (CallFault | undefined)[]
  questions: readonly (HistoryFault | undefined)[]
}

/** A schedule of requests and faults. The seed determines all of it. Times are in milliseconds. */
export interface Plan {
  seed: number
  /** How many machines share the folder: one works it, the other stands by. */
  hosts: number
  /** Whether the only faults are closed chats and kills. Then every accepted message arrives once, and in order. */
  isHeld?: true
  policy: { timeout: number, retries: number, retryUnanswered: Readonly<Record<string, boolean>>, settleTime: number }
  queues: { interval: number, accountInterval: number, capacity: number, pauseAfter: number, pauseFor: number }
  platform: PlatformOptions
  chats: readonly PlannedChat[]
  requests: readonly PlannedRequest[]
  operations: readonly PlannedOperation[]
  /** How long flushes take without a fault, at most. */
  flushTakes: number
  moments: readonly Moment[]
  /** After this time, no faults occur. */
  faultsEnd: number
  end: number
}

const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** How long the platform may carry out a call with a file, a video or a link, in milliseconds. */
export const mediaSettle = 10 * minute

/** The families of faults. A plan has some of them and is free of the others. */
const families = ['calls', 'slow', 'late', 'history', 'disk', 'connection', 'restart', 'chatter', 'clock', 'freeze', 'end', 'reload'] as const
type Families = Record<typeof families[number], boolean>

export function createPlan(seed: number): Plan {
  if (seed >= heldSeeds) return createHeldPlan(seed)
  const random = new Random(seed)
  const has = Object.fromEntries(families.map(name => [name, random.chance(name === 'late' || name === 'clock' ? 0.12 : 0.4)])) as Families
  const isFlow = seed >= flowSeeds
  const hosts = random.chance(0.15) ? 2 : 1
  const accounts = random.chance(0.75) ? ['onebot:1'] : ['onebot:1', 'onebot:2']
  const timeout = random.pick([5, 15, 30]) * second
  const interval = random.pick([0, 0, 1000, 3000])
  const retries = random.between(0, 3)
  const retriesUnanswered = random.chance(0.4)
  // The platform decides whether texts are resent.
  const policy = { timeout, retries, retryUnanswered: {}, settleTime: random.pick([15, 30]) * second }
  const faultsEnd = random.pick([1, 3, 6]) * minute
  const chats = Array.from({ length: random.between(isFlow ? 2 : 1, 3) }, (_, index): PlannedChat => ({
    sid: random.pick(accounts),
    target: { kind: random.chance(0.7) ? 'group' : 'private', id: String(index + 1) },
    before: random.weighted([[1, 0], [1, 3], [6, 700]]),
    calls: has.calls || has.slow || has.late ? faultsOf(random, 24, () => callFault(random, has, timeout)) : [],
    questions: has.history ? faultsOf(random, 30, () => historyFault(random)) : [],
  }))
  const planned = createRequests(random, { hosts, chats: chats.length, until: faultsEnd, most: isFlow ? 24 : 12 })
  const requests = isFlow ? withWishes(new Random(seed + 800_000_011), planned, chats.length) : planned
  // These numbers have their own seeds, so that the rest of a schedule does not depend on them.
  const kinds = new Random(seed + 700_000_001)
  const kind = kindOf(seed) ?? kinds.weighted<PlatformKind>([[8, 'usual'], [1, 'bare'], [1, 'idempotent']])
  const isLimited = kinds.chance(kind === 'usual' ? 0.15 : 0.5)
  const closures = createClosures(new Random(seed + 500_000_009), { accounts, chats: chats.length, faultsEnd })
  const operations = requests.filter(() => random.chance(0.15)).map(({ name, at }): PlannedOperation => ({
    at: at + random.between(0, 2 * minute), kind: random.chance(0.5) ? 'retry' : 'withdraw', request: name,
  }))
  return {
    seed, hosts, policy, requests, operations, faultsEnd,
    chats: isLimited ? chats.map(chat => ({ ...chat, calls: withLimits(kinds, chat.calls) })) : chats,
    queues: {
      interval, accountInterval: seed >= pacedSeeds ? 500 : 0, capacity: random.pick([2, 20, 20, 20]),
      pauseAfter: random.pick([2, 1000, 1000]), pauseFor: random.pick([10, 60]) * second,
    },
    platform: {
      hasHistory: random.chance(0.75), reports: random.chance(0.4), isCoarse: random.chance(0.6), accounts, retriesUnanswered,
      offset: random.weighted([[3, 0], [1, 1700], [1, 3 * hour], [1, -5 * hour]]), tellsMutes: seed % 2 === 0,
      ...traitsOf(kinds, kind),
    },
    flushTakes: random.pick([3, 300, 300]),
    moments: [
      ...createMoments(random, has, { hosts, accounts, chats: chats.length, faultsEnd }),
      ...hosts > 1 ? createTakeOver(random) : [],
      ...closures,
      ...has.end ? createCuts(new Random(seed + 300_000_007), operations, faultsEnd) : [],
    ],
    // Unanswered messages are looked up after five minutes and once settled. The last try of a closed chat may come after eight minutes.
    end: faultsEnd + (requests.some(({ items }) => items.some(({ type }) => type !== 'text')) ? 2 * mediaSettle + 5 * minute : 10 * minute)
      + (closures.length > 0 ? 8 * minute : 0) + (isFlow ? 15 * minute : 0),
  }
}

/**
 * Platforms other than OneBot. `bare` has neither a history nor reports, and never resends on a guess. On an `idempotent` one, repeated
 * calls for a message are harmless for a while.
 */
export type PlatformKind = 'usual' | 'bare' | 'idempotent'

/** From these seeds on, all platforms are of one kind. Elsewhere, some are. */
export const kindSeeds: Readonly<Record<Exclude<PlatformKind, 'usual'>, number>> = { bare: 500_000_000, idempotent: 600_000_000 }

/** From these seeds on, requests have times and ways. */
export const flowSeeds = 700_000_000

/** From these seeds on, accounts have an interval as well. */
export const pacedSeeds = 900_000_000

function kindOf(seed: number): PlatformKind | undefined {
  return seed >= flowSeeds ? undefined : seed >= kindSeeds.idempotent ? 'idempotent' : seed >= kindSeeds.bare ? 'bare' : undefined
}

function traitsOf(random: Random, kind: PlatformKind): Partial<PlatformOptions> {
  if (kind === 'usual') return {}
  if (kind === 'bare') return { hasHistory: false, reports: undefined, retriesUnanswered: false }
  const [hasHistory, retriesUnanswered] = [random.chance(0.3), random.chance(0.2)]
  return { hasHistory, reports: undefined, retriesUnanswered, idempotentFor: random.pick([1, 5, 60]) * minute }
}

/** Lets some calls run into a rate limit of their chat or account. */
function withLimits(random: Random, calls: PlannedChat['calls']): PlannedChat['calls'] {
  const share = random.next() * 0.4
  return Array.from({ length: 24 }, (_, place) => random.chance(share)
    ? {
        answer: 'limited', answerAfter: random.between(1, 400),
        limit: { scope: random.pick(['chat', 'account']), after: random.pick([0.3, 2, 8, 20, 200]) * second },
      }
    : calls[place])
}

/** The first seed of the plans of `createHeldPlan`. */
export const heldSeeds = 1_000_000_000

/** A hundred messages are accepted while their account is logged out or their chats are muted. Meanwhile the relay is killed. */
export function createHeldPlan(seed: number): Plan {
  const random = new Random(seed)
  const sid = 'onebot:1'
  const faultsEnd = random.pick([1, 3, 6]) * minute
  const chats = ['1', '2'].map((id): PlannedChat => ({ sid, target: { kind: 'group', id }, before: 700, calls: [], questions: [] }))
  const isMuted = random.chance(0.5)
  const closed: Disturbance[] = isMuted
    ? chats.map((_, chat) => ({ kind: 'mute', chat, ms: faultsEnd, isReported: random.chance(0.5), isLifted: random.chance(0.5) }))
    : [{ kind: 'trouble', sid, what: random.pick(['logged-out', 'unknown-login']), ms: faultsEnd }]
  const hosts = random.chance(0.3) ? 2 : 1
  const interval = random.pick([0, 1000])
  const kill = (): Moment => ({
    on: random.pick(['time', 'commit']), nth: random.between(20, 400), after: random.between(0, faultsEnd / 2),
    what: { kind: random.pick(['kill', 'power']), host: 0, away: random.between(10, 10_000) },
  })
  const retries = random.between(1, 3)
  const retriesUnanswered = random.chance(0.5)
  return {
    seed, hosts, isHeld: true, chats, faultsEnd,
    policy: { timeout: 15 * second, retries, retryUnanswered: {}, settleTime: 30 * second },
    queues: { interval, accountInterval: 0, capacity: 200, pauseAfter: 1000, pauseFor: minute },
    platform: {
      hasHistory: true, reports: random.chance(0.5), isCoarse: random.chance(0.5), offset: 0, accounts: [sid], retriesUnanswered,
      tellsMutes: random.chance(0.5),
    },
    requests: Array.from({ length: 100 }, (_, name): PlannedRequest => ({
      name, at: Math.floor((name + random.next()) * faultsEnd / 110), host: random.between(0, hosts - 1), chat: random.between(0, 1),
      hasBot: true, mode: 'single', items: [{ type: 'text', look: `text ${name}`, isLink: false }], hasKey: random.chance(0.5),
      deferred: { wait: 0 }, repeats: [1000, 1000],
    })),
    operations: [], flushTakes: random.pick([3, 300, 300]),
    moments: [
      ...closed.map((what): Moment => ({ on: 'time', nth: 0, after: random.between(0, second), what })),
      kill(), ...random.chance(0.3) ? [kill()] : [],
    ],
    end: faultsEnd + 20 * minute,
  }
}

/** Faults for some of the first calls or questions. */
function faultsOf<T>(random: Random, count: number, create: () => T): (T | undefined)[] {
  const share = random.next() * 0.7
  return Array.from({ length: count }, () => random.chance(share) ? create() : undefined)
}

function createRequests(
  random: Random,
  { hosts, chats, until, most }: { hosts: number, chats: number, until: number, most: number },
): PlannedRequest[] {
  const areLinks = random.chance(0.5)
  const createItem = (mode: PlannedRequest['mode']): PlannedItem => {
    const type = random.weighted<PlannedItem['type']>([[mode === 'single' ? 9 : 4, 'text'], [1, 'image'], [1, 'file'], [0.5, 'video']])
    const text = random.chance(0.4) ? random.between(1, 3) : random.between(4, 1000)
    const look = type === 'text' ? `text ${text}` : `f${random.between(1, 2)}`
    return { type, look, isLink: areLinks && random.chance(0.5) }
  }
  // Many requests are close to each other, so that they have to wait.
  let at = 0
  return Array.from({ length: random.between(2, most) }, (_, name): PlannedRequest => {
    at = Math.min(at + random.weighted([[3, random.between(0, 20)], [3, random.between(0, 3000)], [1, random.between(0, 60_000)]]), until)
    const mode = random.chance(0.25) ? 'batch' : 'single'
    const isDeferred = random.chance(0.45)
    const hasKey = random.chance(0.5)
    return {
      name, at, mode, hasKey,
      host: random.chance(0.85) ? 0 : random.between(0, hosts - 1),
      chat: random.between(0, chats - 1),
      hasBot: random.chance(0.8),
      items: Array.from({ length: mode === 'single' ? 1 : random.between(1, 4) }, () => createItem(mode)),
      ...hasKey && random.chance(0.25) && { event: random.chance(0.5) ? {} : { lifetime: random.between(10, 200) * second } },
      ...isDeferred && {
        deferred: { wait: random.chance(0.25) ? random.between(1, 20) * second : 0 },
      },
      ...random.chance(0.15) && { expiresIn: random.between(1, 90) * second },
      ...!isDeferred && random.chance(0.06) && { leaveAfter: random.between(0, 20) * second },
      repeats: hasKey ? Array.from({ length: random.between(0, 5) }, () => random.pick([50, 1000, 40 * second, 4 * minute])) : [],
    }
  })
}

function callFault(random: Random, has: Families, timeout: number): CallFault {
  const soon = random.between(1, 400)
  const slow = Math.round(timeout * (0.3 + random.next() * 2.5))
  const weighted: [number, CallFault][] = [[1, { answer: 'sent', answerAfter: soon, carriedAfter: 1 }]]
  if (has.calls) {
    weighted.push(
      [4, { answer: 'refused', answerAfter: soon, ...soon % 3 === 0 && { carriedAfter: 1 } }], [1, { answer: 'about-target', answerAfter: soon }],
      [1, { answer: 'final', answerAfter: soon }],
      [0.5, { answer: 'suppressed', answerAfter: soon }], [2, { answer: 'unsent', answerAfter: soon }], [3, { answer: 'none', answerAfter: 0 }],
      [4, { answer: 'none', answerAfter: 0, carriedAfter: soon }], [2, { answer: 'unanswered', answerAfter: soon }],
      [2, { answer: 'unanswered', answerAfter: soon, carriedAfter: random.between(1, 2 * soon) }],
      [2, { answer: 'nameless', answerAfter: soon, carriedAfter: 1 }],
      [1, { answer: 'sent', answerAfter: soon, carriedAfter: 1, heldFor: random.chance(0.5) ? soon : slow }],
      [2, { answer: 'none', answerAfter: 0, carriedAfter: soon, cutAfter: random.between(0, 2 * soon) }],
      [1, { answer: 'none', answerAfter: 0, cutAfter: soon }],
    )
  }
  if (has.slow) {
    const share = random.next() * 0.95
    weighted.push(
      [3, { answer: 'sent', answerAfter: slow, carriedAfter: soon }], [3, { answer: 'sent', answerAfter: 0, carriedAfterSettling: share }],
      [2, { answer: 'none', answerAfter: 0, carriedAfterSettling: share }], [1, { answer: 'refused', answerAfter: slow }],
      [1, { answer: 'unanswered', answerAfter: slow, carriedAfterSettling: share }],
      [2, { answer: 'none', answerAfter: 0, carriedAfterSettling: share, cutAfter: soon }],
    )
  }
  if (has.late) {
    weighted.push([3, { answer: random.chance(0.5) ? 'none' : 'sent', answerAfter: 0, carriedAfterSettling: 1 + random.next() * 2 }])
  }
  return random.weighted(weighted)
}

function historyFault(random: Random): HistoryFault {
  const answerAfter = random.weighted([[1, random.between(1, 400)], [1, random.between(400, 20_000)]])
  return {
    answer: random.weighted([[4, 'page'], [1, 'refused'], [2, 'unanswered'], [2, 'none'], [1, 'unreadable']]),
    answerAfter, readAfter: random.between(0, answerAfter),
  }
}

/** Adds times and ways. Most messages are texts. Those to one chat share its digest and quiet hours. */
function withWishes(random: Random, requests: readonly PlannedRequest[], chats: number): PlannedRequest[] {
  const policies = Array.from({ length: chats }, (): PlannedWishes => {
    const from = random.between(0, 4)
    return {
      ...random.chance(0.6) && { digest: random.between(10, 60) * second },
      ...random.chance(0.3) && { quiet: { from, to: from + random.between(1, 5), zone: 'UTC' } },
    }
  })
  const hooks = random.chance(0.3)
  return requests.map((request): PlannedRequest => {
    const { chat, deferred } = request
    const others = Array.from({ length: chats }, (_, other) => other).filter(other => other !== chat)
    const wishes: PlannedWishes = {
      ...random.chance(0.7) && policies[chat],
      ...random.chance(0.15) && { urgent: true },
      ...random.chance(0.12) && { sendIn: random.between(1, 240) * second },
      ...random.chance(0.3) && {
        route: {
          ways: [chat, ...random.chance(0.5) ? others : others.reverse()].slice(0, random.between(2, 3)),
          after: random.pick([1, 10, 60, 120]) * second, whenUnknown: random.chance(0.3) ? 'next' : 'stop',
        },
      },
      ...hooks && random.chance(0.8) && { isHook: true },
    }
    const isLater = deferred === undefined && random.chance(0.5)
    const text: Partial<PlannedRequest> = { mode: 'single', items: [{ type: 'text', look: `text ${random.between(1, 1000)}`, isLink: false }] }
    return { ...request, ...random.chance(0.85) && text, ...isLater && { deferred: { wait: 0 } }, wishes }
  })
}

/** Mutes a chat, logs an account out, or swallows its messages, for a while. */
function createClosures(
  random: Random, { accounts, chats, faultsEnd }: { accounts: readonly string[], chats: number, faultsEnd: number },
): Moment[] {
  const kinds = (['mute', 'logged-out', 'unknown-login', 'swallowed'] as const).filter(() => random.chance(0.08))
  return kinds.flatMap(kind => Array.from({ length: random.between(1, 2) }, (): Moment => {
    const on = random.weighted<Moment['on']>([[1, 'time'], [2, 'call']])
    const ms = random.pick([5, 40, 200]) * second
    return {
      on, nth: random.between(1, 12), after: random.between(0, on === 'time' ? faultsEnd : second),
      what: kind === 'mute'
        ? { kind, chat: random.between(0, chats - 1), ms, isReported: random.chance(0.5), isLifted: random.chance(0.5) }
        : { kind: 'trouble', sid: random.pick(accounts), what: kind, ms },
    }
  }))
}

/** Cuts the power right after a commit, or after an operator has done something. */
function createCuts(random: Random, operations: readonly PlannedOperation[], faultsEnd: number): Moment[] {
  const what = (): Disturbance => ({ kind: 'power', host: 0, away: random.between(10, 3000) })
  const cuts = Array.from({ length: random.between(0, 2) }, (): Moment => (
    { on: 'commit', nth: random.between(1, 30), after: random.between(0, 300), what: what() }
  ))
  const after = operations.filter(({ at }) => at < faultsEnd && random.chance(0.3))
  return [...cuts, ...after.map(({ at }): Moment => ({ on: 'time', nth: 0, after: at + random.between(0, 400), what: what() }))]
}

/** Freezes the owner in the middle of a send, long enough for the other relay to take over. */
function createTakeOver(random: Random): Moment[] {
  return Array.from({ length: random.pick([0, 1, 2]) }, (): Moment => ({
    on: random.chance(0.7) ? 'commit' : 'call', nth: random.between(3, 40), after: random.between(0, 15),
    what: { kind: 'freeze', host: 0, ms: random.pick([20, 100]) * second, isAsleep: random.chance(0.3) },
  }))
}

function createMoments(
  random: Random, has: Families,
  { hosts, accounts, chats, faultsEnd }: Pick<Plan, 'hosts' | 'faultsEnd'> & { accounts: readonly string[], chats: number },
): Moment[] {
  const weighted: [number, () => Disturbance][] = []
  const host = (): number => random.chance(0.7) ? 0 : random.between(0, hosts - 1)
  const away = (): number => random.weighted([[3, random.between(10, 3000)], [1, random.between(3000, 40_000)]])
  if (has.connection) weighted.push([3, () => ({ kind: 'cut', sid: random.pick(accounts), away: away() })])
  if (has.restart) weighted.push([2, () => ({ kind: 'restart', sid: random.pick(accounts), away: away(), kept: random.pick([0, 1, 3, 1000]) })])
  if (has.chatter) weighted.push([2, () => ({ kind: 'chatter', chat: random.between(0, chats - 1), others: random.pick([10, 60, 600]) })])
  if (has.clock) weighted.push([3, () => ({ kind: 'clock', host: host(), by: random.pick([-1, 1]) * random.pick([3, 60, 7200]) * second })])
  if (has.freeze) {
    weighted.push([3, () => ({ kind: 'freeze', host: host(), ms: random.pick([3, 9, 20, 100]) * second, isAsleep: random.chance(0.5) })])
  }
  if (has.disk) {
    const ms = (): number => random.pick([0.5, 2, 10, 40]) * second
    weighted.push(
      [2, () => ({ kind: 'full', ms: ms(), hasReserve: random.chance(0.5) })], [2, () => ({ kind: 'slow', ms: ms(), takes: random.pick([0.1, 1, 5]) * second })],
      [1, () => ({ kind: 'unflushed' })], [1, () => ({ kind: 'unusable', ms: ms() })],
    )
  }
  if (has.end) weighted.push([5, () => ({ kind: random.pick(['kill', 'power', 'power']), host: host(), away: away() })], [2, () => ({ kind: 'stop', host: host(), away: away() })])
  if (has.reload) weighted.push([3, () => ({ kind: 'reload', host: host(), isAtOnce: random.chance(0.5) })])
  if (weighted.length === 0) return []
  return Array.from({ length: random.between(0, 5) }, (): Moment => {
    const on = random.weighted<Moment['on']>([[1, 'time'], [4, 'call'], [3, 'commit']])
    return {
      on,
      nth: random.between(1, on === 'call' ? 12 : 40),
      after: on === 'time' ? random.between(0, faultsEnd) : random.weighted([[3, random.between(0, 30)], [1, random.between(0, 40_000)]]),
      what: random.weighted(weighted)(),
    }
  })
}
