import { languages } from '../lib/language'
import { isBoolean, isNumber, isString, listOf, objectOf, oneOf, optional } from '../lib/shape'
import { threadModes, type Address, type Policy, type Quiet, type Route, type Target, type ThreadMode } from '../message/model'

/** When and how a delivery leaves, as its request and the name of its target have it. Times are in milliseconds since the epoch. */
export interface Flow {
  /** It passes digests and quiet hours. */
  readonly urgent?: boolean
  /** When it joins its lane. */
  readonly sendAt?: number
  /** That of its name when it was accepted. */
  readonly policy?: Policy
  readonly thread?: ThreadLink
  readonly route?: RouteState
  /** The digest that it left in. */
  readonly digest?: DigestShare
  /** The deliveries that it stands for, where it is a digest: they end as it ends. */
  readonly members?: readonly DigestMember[]
}

/** The thread of a delivery, and how its message goes on with it. */
export interface ThreadLink {
  /** A digest of the caller and of what it calls the thread. */
  readonly name: string
  readonly mode: ThreadMode
  /** What is done, decided before the message leaves; absent until then. */
  readonly done?: ThreadDeed
  /** The platform messages that it answers, changes or takes back. */
  readonly ids?: readonly string[]
  /** An item of the platform message that stands for the delivery in its thread: a batch goes on with it by one of its messages. */
  readonly index?: number
}

export const threadDeeds = ['new', 'replied', 'updated', 'replaced'] as const
export type ThreadDeed = typeof threadDeeds[number]

/** The ways to a target, and how far they were gone. */
export interface RouteState extends Route {
  /** The place of the present rung. */
  readonly index: number
  /** The rungs before it. */
  readonly past: readonly RungEnd[]
}

/** How a rung ended. */
export interface RungEnd {
  /** As `writeAddress` has it. */
  readonly target: string
  readonly outcome: string
  readonly reason: string
  readonly at: number
}

export interface DigestMember {
  readonly id: string
  /** Whether its text is in the digest, or it is only counted. */
  readonly shown: boolean
}

/** The part of a delivery in a digest. */
export interface DigestShare {
  /** The ID of the delivery that is the digest. */
  readonly id: string
  /** How many it stands for. */
  readonly count: number
  /** As `DigestMember.shown`. */
  readonly shown: boolean
}

const isAddress = objectOf<Address>({
  platform: optional(isString), selfId: optional(isString), target: objectOf<Target>({ kind: oneOf(['group', 'private']), id: isString }),
})

/** Tells a flow that was read from JSON. */
export const isFlow = objectOf<Flow>({
  urgent: optional(isBoolean),
  sendAt: optional(isNumber),
  policy: optional(objectOf<Policy>({
    name: isString,
    digest: optional(isNumber),
    quiet: optional(objectOf<Quiet>({ from: isNumber, to: isNumber, zone: isString })),
    lang: optional(oneOf(languages)),
  })),
  thread: optional(objectOf<ThreadLink>({
    name: isString,
    mode: oneOf(threadModes),
    done: optional(oneOf(threadDeeds)),
    ids: optional(listOf(isString)),
    index: optional(isNumber),
  })),
  route: optional(objectOf<RouteState>({
    name: isString,
    rungs: listOf(isAddress),
    after: isNumber,
    whenUnknown: oneOf(['stop', 'next']),
    index: isNumber,
    past: listOf(objectOf<RungEnd>({ target: isString, outcome: isString, reason: isString, at: isNumber })),
  })),
  digest: optional(objectOf<DigestShare>({ id: isString, count: isNumber, shown: isBoolean })),
  members: optional(listOf(objectOf<DigestMember>({ id: isString, shown: isBoolean }))),
})
