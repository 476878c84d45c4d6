import type { Address, Policy, Quiet, Route, ThreadMode } from '../message/model'
import { isObject, type JsonObject } from '../message/parse'
import { quietUntil } from '../message/quiet'
import { readAddress, writeAddress } from '../message/target'

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

/** Until when a delivery may not leave, in milliseconds since the epoch, whatever its lane says; `undefined` where it may. */
export function dueAt({ urgent, sendAt, policy }: Flow, wall: number): number | undefined {
  if (sendAt !== undefined && sendAt > wall) return sendAt
  return urgent || !policy?.quiet ? undefined : quietUntil(policy.quiet, wall)
}

/** As JSON; nothing where it has nothing to say. */
export function writeFlow(flow: Flow): object | undefined {
  const { route, ...rest } = flow
  const written = { ...rest, ...route && { route: { ...route, rungs: route.rungs.map(writeAddress) } } }
  return Object.keys(written).length > 0 ? written : undefined
}

/** Reads the result of `writeFlow`; what is damaged is left out. */
export function readFlow(stored: unknown): Flow {
  const { urgent, sendAt, policy, thread, route, digest, members } = fieldsOf(stored)
  return {
    ...urgent === true && { urgent },
    ...typeof sendAt === 'number' && { sendAt },
    ...isObject(policy) && { policy: readPolicy(policy) },
    ...isObject(thread) && { thread: readThread(thread) },
    ...isObject(route) && { route: readRoute(route) },
    ...isObject(digest) && { digest: { id: String(digest.id), count: Number(digest.count), shown: digest.shown === true } },
    ...Array.isArray(members) && { members: Array.from<unknown, DigestMember>(members, readMember) },
  }
}

function readMember(stored: unknown): DigestMember {
  const { id, shown } = fieldsOf(stored)
  return { id: String(id), shown: shown === true }
}

function readPolicy({ name, digest, quiet, lang }: JsonObject): Policy {
  return {
    name: String(name),
    ...typeof digest === 'number' && { digest },
    ...isObject(quiet) && { quiet: readQuiet(quiet) },
    ...(lang === 'zh-CN' || lang === 'en-US') && { lang },
  }
}

function readQuiet({ from, to, zone }: JsonObject): Quiet {
  return { from: Number(from), to: Number(to), zone: String(zone) }
}

function readThread({ name, mode, done, ids, index }: JsonObject): ThreadLink {
  const deed = threadDeeds.find(each => each === done)
  return {
    name: String(name),
    mode: mode === 'update' || mode === 'replace' ? mode : 'reply',
    ...deed && { done: deed },
    ...Array.isArray(ids) && { ids: ids.map(String) },
    ...typeof index === 'number' && { index },
  }
}

function readRoute({ name, rungs, after, whenUnknown, index, past }: JsonObject): RouteState {
  const list: unknown[] = Array.isArray(rungs) ? rungs : []
  const ends: unknown[] = Array.isArray(past) ? past : []
  return {
    name: String(name),
    rungs: list.map(each => readAddress(String(each))).filter((each): each is Address => each !== undefined),
    after: Number(after), whenUnknown: whenUnknown === 'next' ? 'next' : 'stop', index: Number(index),
    past: ends.map(each => {
      const { target, outcome, reason, at } = fieldsOf(each)
      return { target: String(target), outcome: String(outcome), reason: String(reason), at: Number(at) }
    }),
  }
}

function fieldsOf(stored: unknown): JsonObject {
  return isObject(stored) ? stored : {}
}
