import { isBoolean, isNumber, isString, isTime, isWhole, listOf, objectOf, oneOf, optional } from '../lib/shape'
import { following, scheduleOf, type BeatRule } from './rule'

/**
 * A beat is a job that reports. Its states and transitions:
 *
 * | sign ↓ state →    | new     | up        | started                     | down     | paused              |
 * | ----------------- | ------- | --------- | --------------------------- | -------- | ------------------- |
 * | start             | started | started   | started, the deadline stays | down     | paused              |
 * | good              | up      | up        | up; started if another runs | up, told | paused, told if bad |
 * | bad               | down, told | down, told | down, told              | down     | paused              |
 * | the deadline      | –       | down, told | down, told                 | –        | –                   |
 * | `pause`           | paused  | paused    | paused                      | paused   | paused              |
 * | `resume`          | –       | –         | –                           | –        | as its last sign    |
 * | the relay is back | –       | up, with the next deadline | up, likewise | –       | –                   |
 *
 * *Told* adds a notice, which leaves as a message. A log changes no state. The functions below are pure: they return the next beat.
 */
export const beatStates = ['new', 'up', 'started', 'down', 'paused'] as const
export type BeatState = typeof beatStates[number]

/** What a job reports. */
export interface Sign {
  readonly kind: 'start' | 'good' | 'bad' | 'log'
  /** The exit status. */
  readonly status?: number | undefined
  /** Pairs a start with its end. */
  readonly run?: string | undefined
  readonly log?: string | undefined
}

/** Why a beat is down: no sign came in time, a run did not end in time, or the job failed. */
interface Trouble {
  readonly kind: 'late' | 'hung' | 'failed'
  /** In milliseconds since the epoch, like all times here. */
  readonly at: number
  /** When the sign was due, or when the run began. */
  readonly due?: number | undefined
}

/** What people are to hear. */
export interface Notice {
  readonly trouble: Trouble
  readonly isOver: boolean
  readonly at: number
  /** The last end of a run before it. */
  readonly last?: number | undefined
  readonly duration?: number | undefined
  readonly status?: number | undefined
  /** The last lines of the log. */
  readonly tail?: string | undefined
}

/** How a job is doing. */
export interface Beat {
  /** The schedule that `due` follows. */
  readonly schedule: string
  readonly state: BeatState
  /** When the next sign is due, or the oldest run began: the grace time counts from here. Absent while nothing is awaited. */
  readonly due?: number | undefined
  /** When a run ended last, how long it took, and its exit status. */
  readonly last?: number | undefined
  readonly duration?: number | undefined
  readonly status?: number | undefined
  /** What runs. */
  readonly runs: readonly { readonly at: number, readonly run?: string | undefined }[]
  readonly trouble?: Trouble | undefined
  /** The log of the present or last run. */
  readonly log?: string | undefined
  /** What is not submitted yet, the oldest first. */
  readonly untold: readonly Notice[]
}

/** The most runs at the same time. */
const mostRuns = 20
/** How much earlier than a cron time a sign may come, because two clocks differ, in milliseconds. */
const early = 60_000
/** The lines of a log that are shown in a chat, and the characters of a line. */
const shown = { lines: 5, letters: 200 }

export function createBeat(rule: BeatRule): Beat {
  return { schedule: scheduleOf(rule), state: 'new', runs: [], untold: [] }
}

/** A sign came. */
export function receive(beat: Beat, rule: BeatRule, sign: Sign, now: number): Beat {
  const { state, runs } = beat
  const { kind, run, log, status } = sign
  if (kind === 'log') return { ...beat, log }
  if (kind === 'start') {
    const next = { ...beat, log, runs: [...runs.filter(each => each.run !== run), { at: now, run }].slice(-mostRuns) }
    return state === 'new' || state === 'up' ? { ...next, state: 'started', due: now } : next
  }
  const begun = runs.findLast(each => run === undefined || each.run === run)?.at
  const others = runs.filter(each => run !== undefined && each.run !== run && each.at + rule.grace > now)
  const ended = { ...beat, last: now, duration: begun === undefined ? undefined : now - begun, status, runs: others }
  if (kind === 'bad') {
    const failed = { ...ended, log: log ?? beat.log }
    return state === 'down' || state === 'paused' ? failed : fall(failed, { kind: 'failed', at: now }, now, beat.last)
  }
  const over = beat.trouble ? [notice(ended, beat.trouble, now, true)] : []
  const good = { ...ended, log, trouble: undefined, untold: [...beat.untold, ...over] }
  if (state === 'paused') return good
  const oldest = others[0]?.at
  if (oldest !== undefined) return { ...good, state: 'started', due: oldest }
  return { ...good, state: 'up', due: following(rule, now, rule.cron === undefined ? now : now + early) }
}

/** The deadline has passed. */
export function expire(beat: Beat, now: number): Beat {
  const { state, due, last } = beat
  return fall(beat, { kind: state === 'started' ? 'hung' : 'late', at: now, due }, now, last)
}

/** The relay was away, and may have missed signs: what was due is awaited at the next time. So is the first sign of a new schedule. */
export function catchUp(beat: Beat, rule: BeatRule, now: number): Beat {
  const { due, last, schedule } = beat
  const present = scheduleOf(rule)
  if (due === undefined || (due > now && schedule === present)) return { ...beat, schedule: present }
  return { ...beat, schedule: present, state: 'up', due: following(rule, last ?? due, now) }
}

export function pause(beat: Beat): Beat {
  return { ...beat, state: 'paused', due: undefined }
}

export function resume(beat: Beat, rule: BeatRule, now: number): Beat {
  const { state, trouble, last } = beat
  if (state !== 'paused') return beat
  if (trouble) return { ...beat, state: 'down' }
  return last === undefined ? { ...beat, state: 'new' } : { ...beat, state: 'up', runs: [], due: following(rule, last, now) }
}

/** When the next step is due by itself; `null` for never. */
export function dueAt({ due, untold }: Beat, { grace }: BeatRule): number | null {
  if (untold.length > 0) return 0
  return due === undefined ? null : due + grace
}

function fall(beat: Beat, trouble: Trouble, now: number, last: number | undefined): Beat {
  return { ...beat, state: 'down', due: undefined, trouble, untold: [...beat.untold, { ...notice(beat, trouble, now, false), last }] }
}

function notice({ last, duration, status, log }: Beat, trouble: Trouble, at: number, isOver: boolean): Notice {
  // A sign that did not come has no log.
  const tail = isOver || trouble.kind === 'late' ? undefined : log && tailOf(log)
  return { trouble, isOver, at, last, duration, status, tail }
}

function tailOf(log: string): string {
  return log.trimEnd().split('\n').slice(-shown.lines).map(line => line.trimEnd().slice(0, shown.letters).toWellFormed()).join('\n')
}

const isTrouble = objectOf<Trouble>({ kind: oneOf(['late', 'hung', 'failed']), at: isTime, due: optional(isTime) })

/** Checks a beat read from JSON. */
export const isBeat = objectOf<Beat>({
  schedule: isString, state: oneOf(beatStates), due: optional(isTime), last: optional(isTime), duration: optional(isNumber),
  status: optional(isWhole), trouble: optional(isTrouble), log: optional(isString),
  runs: listOf(objectOf<Beat['runs'][number]>({ at: isTime, run: optional(isString) })),
  untold: listOf(objectOf<Notice>({
    trouble: isTrouble, isOver: isBoolean, at: isTime, last: optional(isTime), duration: optional(isNumber), status: optional(isWhole),
    tail: optional(isString),
  })),
})
