import { isString, isTime, isWhole, listOf, mapOf, objectOf, oneOf, optional } from '../lib/shape'
import { day, hour, minute } from '../lib/time'
import { severities, type Ack, type Severity } from '../message/model'

/**
 * An incident is a thread of a name that waits for somebody. Its states and transitions:
 *
 * | event ↓ state →   | open             | taken         | silenced                        | resolved |
 * | ----------------- | ---------------- | ------------- | ------------------------------- | -------- |
 * | `happen`          | open             | taken         | silenced, and only counted      | –        |
 * | `take`            | taken            | told          | taken: the silence ends         | told     |
 * | `silence`         | silenced         | silenced      | silenced until then             | told     |
 * | `release`         | told             | open, anew    | as before it; anew if open      | told     |
 * | `resolve`         | resolved         | resolved      | resolved                        | told     |
 * | `step` is due     | open             | –             | –                               | –        |
 * | `remind` is due   | –                | taken         | –                               | –        |
 * | `wake` is due     | –                | –             | as before it                    | –        |
 *
 * *Told* changes nothing: who asked hears how it is. *Anew* begins the steps again. What its source ends is resolved by `resolve`
 * without an actor. The functions below are pure: they return the next incident, or `undefined` for *told*.
 */
export const incidentStates = ['open', 'taken', 'silenced', 'resolved'] as const
export type IncidentState = typeof incidentStates[number]

export const actions = ['take', 'silence', 'resolve', 'release'] as const
export type Action = typeof actions[number]

/** How long a silence is at least and at most, and if nobody says, in milliseconds. */
export const silences = { least: minute, usual: hour, most: 7 * day }

/** Who acts. */
export interface Actor {
  /** The name for texts. */
  readonly name: string
  /** The name of the person in the settings, if it is known. */
  readonly person?: string | undefined
  /** The account, as `onebot:10001`; absent over HTTP. */
  readonly account?: string | undefined
  /** The API key; absent in a chat. */
  readonly key?: string | undefined
  readonly way: 'quote' | 'reaction' | 'mention' | 'http'
}

export const entryKinds = ['opened', 'event', 'taken', 'silenced', 'woken', 'released', 'escalated', 'reminded', 'resolved'] as const

/** What happened to an incident. */
export interface TimelineEntry {
  readonly kind: typeof entryKinds[number]
  /** In milliseconds since the epoch, like all times here. */
  readonly at: number
  /** Who did it; absent for the source and the relay. */
  readonly by?: Actor | undefined
  /** The place of a step in the escalation. */
  readonly step?: number | undefined
  /** Until when it is silent. */
  readonly until?: number | undefined
}

/** An incident. */
export interface Incident {
  /** Short enough to type. */
  readonly id: string
  /** The name whose thread it is. */
  readonly name: string
  /** The thread as its caller wrote it, and that caller. */
  readonly thread: string
  readonly caller: string | null
  readonly state: IncidentState
  /** The worst so far. */
  readonly severity: Severity
  readonly title: string
  readonly since: number
  readonly begunAt?: string | undefined
  readonly owner?: Actor | undefined
  readonly takenAt?: number | undefined
  readonly silencedUntil?: number | undefined
  /** What came during the silence. */
  readonly missed: { readonly count: number, readonly newest?: string | undefined }
  readonly resolvedAt?: number | undefined
  /** From when the steps count, the place of the next one, and when the last one was made. */
  readonly steps: { readonly from: number, readonly next: number, readonly last?: number | undefined }
  readonly remindAt?: number | undefined
  /** The number of events that were accepted or counted. */
  readonly events: number
  /** The worst severity that each chat has heard of, by target; the first is where events are counted. */
  readonly heard: Readonly<Record<string, Severity>>
  /** The people who were called by `@`. */
  readonly called: readonly string[]
  /** The newest entries, the oldest first. */
  readonly timeline: readonly TimelineEntry[]
  /** How many of the newest entries the operator's callback and the plugins of the bot have not heard of. */
  readonly untold: number
}

/** An event of a source. */
export interface Happening {
  /** The target that it was accepted for. */
  readonly chat: string
  /** The people who are called by it. */
  readonly called: readonly string[]
  readonly severity: Severity
  readonly title: string
  readonly begunAt?: string | undefined
}

/** The most entries of a timeline. */
const longest = 100

export function begin(origin: Pick<Incident, 'id' | 'name' | 'thread' | 'caller'>, { chat, called, ...event }: Happening, now: number): Incident {
  return note({
    ...origin, ...event, called, heard: { [chat]: event.severity }, state: 'open', since: now, missed: { count: 0 },
    steps: { from: now, next: 0 }, events: 1, timeline: [], untold: 0,
  }, { kind: 'opened', at: now })
}

/** Whether a chat has not heard of an event this bad: then somebody is called by `@`. */
export function isNews({ heard }: Pick<Incident, 'heard'>, chat: string, severity: Severity): boolean {
  const known = heard[chat]
  return known === undefined || isWorse(severity, known)
}

/** Whether an event in the thread of a resolved incident is a new start, and not a late report of the old one. */
export function isNewStart(incident: Incident, begunAt: string | undefined): boolean {
  return begunAt === undefined || incident.begunAt === undefined || begunAt > incident.begunAt
}

/** A further event. In other chats than the first, it is the one that was counted there. */
export function happen(incident: Incident, { chat, called, severity, begunAt }: Happening, now: number): Incident {
  const { heard, events } = incident
  const next = {
    ...incident, severity: worst(incident.severity, severity), begunAt, called: [...new Set([...incident.called, ...called])],
    heard: { ...heard, [chat]: worst(heard[chat] ?? severity, severity) },
  }
  return Object.keys(heard)[0] === chat ? note({ ...next, events: events + 1 }, { kind: 'event', at: now }) : next
}

/** An event that nobody hears because of the silence. */
export function miss(incident: Incident, { chat, severity, title, begunAt }: Omit<Happening, 'called'>): Incident {
  const { missed, events, heard } = incident
  if (Object.keys(heard)[0] !== chat) return incident
  const next = { count: missed.count + 1, newest: title }
  return { ...incident, severity: worst(incident.severity, severity), begunAt, events: events + 1, missed: next }
}

export function take(incident: Incident, by: Actor, now: number, remind?: number): Incident | undefined {
  if (incident.state === 'taken' || incident.state === 'resolved') return
  const quiet = { silencedUntil: undefined, missed: { count: 0 } }
  return note({ ...incident, ...quiet, state: 'taken', owner: by, takenAt: now, remindAt: remind && now + remind }, { kind: 'taken', at: now, by })
}

export function silence(incident: Incident, by: Actor, now: number, until: number): Incident | undefined {
  if (incident.state === 'resolved') return
  return note({ ...incident, state: 'silenced', silencedUntil: until }, { kind: 'silenced', at: now, by, until })
}

export function release(incident: Incident, by: Actor, now: number): Incident | undefined {
  const { state } = incident
  if (state === 'open' || state === 'resolved') return
  const next = state === 'taken' ? anew({ ...incident, owner: undefined, takenAt: undefined, remindAt: undefined }, now) : listen(incident, now)
  return note(next, { kind: 'released', at: now, by })
}

/** @param by absent if its source ends it */
export function resolve(incident: Incident, now: number, by?: Actor): Incident | undefined {
  if (incident.state === 'resolved') return
  return note({ ...incident, state: 'resolved', resolvedAt: now, silencedUntil: undefined }, { kind: 'resolved', at: now, by })
}

/** The end of the silence. */
export function wake(incident: Incident, now: number): Incident {
  return note(listen(incident, now), { kind: 'woken', at: now })
}

/** A step was made. @param called who was called by it */
export function stepped(incident: Incident, step: number, called: readonly string[], now: number): Incident {
  const { from } = incident.steps
  const all = [...new Set([...incident.called, ...called])]
  return note({ ...incident, called: all, steps: { from, next: step + 1, last: now } }, { kind: 'escalated', at: now, step })
}

export function reminded(incident: Incident, now: number, remind: number): Incident {
  return note({ ...incident, remindAt: now + remind }, { kind: 'reminded', at: now, by: incident.owner })
}

/** The furthest step that is due; those before it are left out. */
export function dueStep({ state, steps: { from, next, last } }: Incident, { escalate }: Ack, now: number): number | undefined {
  if (state !== 'open') return
  const due = escalate.findLastIndex((step, index) => index >= next && from + step.after <= now)
  if (due >= 0) return due
  const again = escalate.at(-1)?.again
  const isOver = next >= escalate.length && again !== undefined && last !== undefined && last + again <= now
  return isOver ? escalate.length - 1 : undefined
}

/** When something is to be done; `null` for never. @param ack the present rules; absent if the name has none any more */
export function dueAt(incident: Incident, ack: Ack | undefined): number | null {
  const { state, steps: { from, next, last }, remindAt, silencedUntil } = incident
  if (state === 'silenced') return silencedUntil ?? null
  if (state === 'taken') return remindAt ?? null
  if (state === 'resolved' || !ack) return null
  const step = ack.escalate[next]
  if (step) return from + step.after
  const again = ack.escalate.at(-1)?.again
  return again !== undefined && last !== undefined ? last + again : null
}

export function isWorse(one: Severity, other: Severity): boolean {
  return severities.indexOf(one) < severities.indexOf(other)
}

function worst(one: Severity, other: Severity): Severity {
  return isWorse(other, one) ? other : one
}

/** As before the silence. */
function listen(incident: Incident, now: number): Incident {
  const next = { ...incident, silencedUntil: undefined, missed: { count: 0 } }
  return incident.owner ? { ...next, state: 'taken' } : anew(next, now)
}

function anew(incident: Incident, now: number): Incident {
  return { ...incident, state: 'open', steps: { from: now, next: 0 } }
}

function note(incident: Incident, entry: TimelineEntry): Incident {
  return { ...incident, timeline: [...incident.timeline, entry].slice(-longest), untold: Math.min(incident.untold + 1, longest) }
}

const isActor = objectOf<Actor>({
  name: isString, person: optional(isString), account: optional(isString), key: optional(isString),
  way: oneOf(['quote', 'reaction', 'mention', 'http']),
})

/** Checks an incident read from JSON. */
export const isIncident = objectOf<Incident>({
  id: isString, name: isString, thread: isString, caller: value => value === null || isString(value), state: oneOf(incidentStates),
  severity: oneOf(severities), title: isString, since: isTime, begunAt: optional(isString), owner: optional(isActor),
  takenAt: optional(isTime), silencedUntil: optional(isTime), resolvedAt: optional(isTime), remindAt: optional(isTime),
  missed: objectOf<Incident['missed']>({ count: isWhole, newest: optional(isString) }),
  steps: objectOf<Incident['steps']>({ from: isTime, next: isWhole, last: optional(isTime) }),
  events: isWhole, heard: mapOf(oneOf(severities)), called: listOf(isString), untold: isWhole,
  timeline: listOf(objectOf<TimelineEntry>({
    kind: oneOf(entryKinds), at: isTime, by: optional(isActor), step: optional(isWhole), until: optional(isTime),
  })),
})
