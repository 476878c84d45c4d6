import { languages } from '../../texts/language'
import { isBoolean, isString, isTime, isWhole, listOf, objectOf, oneOf, optional } from '../../lib/shape'
import { threadModes, threadPhases, type Address, type Policy, type Quiet, type Route, type Target, type ThreadMode, type ThreadPhase } from '../../message/model'
import { isText, type Text } from '../../texts/text'

/** Why a delivery waits although its chat is open, and until when, in milliseconds since the epoch. */
export interface Deferral { kind: 'scheduled' | 'quiet' | 'digest', until: number }

/** When and how a delivery leaves, given by its request and the name of its target. Times are in milliseconds since the epoch. */
export interface Flow {
  /** Whether it skips digests and quiet hours. */
  readonly urgent?: boolean
  /** The time it is scheduled for. */
  readonly sendAt?: number
  /** The policy of the target's name when the delivery was accepted. */
  readonly policy?: Policy
  readonly thread?: ThreadLink
  readonly route?: RouteState
  /** The digest that the delivery left in. */
  readonly digest?: DigestShare
  /** The members, if the delivery is a digest: they end as it ends. */
  readonly members?: readonly DigestMember[]
}

/** The thread of a delivery, and how its message joins it. */
export interface ThreadLink {
  /** A hash of the caller and its name for the thread. */
  readonly name: string
  readonly mode: ThreadMode
  readonly phase?: ThreadPhase
  /** How the message joins the thread. Decided right before the message leaves; absent until then. */
  readonly done?: ThreadDeed
  /** The platform messages that it replies to, updates or replaces. */
  readonly ids?: readonly string[]
  /** An item of the platform message that represents the delivery in its thread: of a batch, one message does. */
  readonly index?: number
}

export const threadDeeds = ['new', 'replied', 'updated', 'replaced'] as const
export type ThreadDeed = typeof threadDeeds[number]

/** The ways to a target, and how far they were tried. */
export interface RouteState extends Route {
  /** The place of the present way. */
  readonly index: number
  /** The ways that were tried before. */
  readonly past: readonly WayEnd[]
}

/** The end of a way. */
export interface WayEnd {
  /** As `writeAddress` has it. */
  readonly target: string
  readonly outcome: string
  readonly reason: Text
  readonly at: number
}

export interface DigestMember {
  readonly id: string
  /** Whether the digest shows its text, or only counts it. */
  readonly shown: boolean
}

/** The digest that a delivery left in. */
export interface DigestShare {
  /** The ID of the delivery that is the digest. */
  readonly id: string
  /** The number of its members. */
  readonly count: number
  /** As `DigestMember.shown`. */
  readonly shown: boolean
}

const isAddress = objectOf<Address>({
  platform: optional(isString), selfId: optional(isString),
  target: objectOf<Target>({ kind: oneOf(['group', 'private']), id: isString, group: optional(isString) }),
})

/** Checks a flow read from JSON. */
export const isFlow = objectOf<Flow>({
  urgent: optional(isBoolean),
  sendAt: optional(isTime),
  policy: optional(objectOf<Policy>({
    name: isString,
    digest: optional(isTime),
    durable: optional(isBoolean),
    quiet: optional(objectOf<Quiet>({ from: isWhole, to: isWhole, zone: isString })),
    lang: optional(oneOf(languages)),
  })),
  thread: optional(objectOf<ThreadLink>({
    name: isString,
    mode: oneOf(threadModes),
    phase: optional(oneOf(threadPhases)),
    done: optional(oneOf(threadDeeds)),
    ids: optional(listOf(isString)),
    index: optional(isWhole),
  })),
  route: optional(objectOf<RouteState>({
    name: isString,
    ways: listOf(isAddress),
    after: isTime,
    whenUnknown: oneOf(['stop', 'next']),
    index: isWhole,
    past: listOf(objectOf<WayEnd>({ target: isString, outcome: isString, reason: isText, at: isTime })),
  })),
  digest: optional(objectOf<DigestShare>({ id: isString, count: isWhole, shown: isBoolean })),
  members: optional(listOf(objectOf<DigestMember>({ id: isString, shown: isBoolean }))),
})
