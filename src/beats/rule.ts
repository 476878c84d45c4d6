import { Cron } from 'croner'
import { demand, RelayError } from '../errors'
import { isObject, withoutNull } from '../lib/shape'
import { day, minute, parseDuration } from '../lib/time'
import { readList, refuseFields } from '../lib/words'
import { severities, type Severity, type TargetNames } from '../message/model'
import { isZone, ownZone } from '../message/quiet'
import { isName, nameRule, parseDestinations } from '../message/target'
import { clauses, say } from '../texts/text'

/** When a beat is to report, and who hears if it does not. Times are in milliseconds. */
export interface BeatRule {
  readonly name: string
  /** The time between two signs. Either this or `cron` is there. */
  readonly every?: number
  /** When signs are due, as five fields, by the clocks of `zone`. */
  readonly cron?: string
  readonly zone: string
  /** How late a sign may be, and how long a run may take. */
  readonly grace: number
  /** The targets and names. */
  readonly to: readonly string[]
  readonly severity: Exclude<Severity, 'ok'>
}

const usualGrace = 5 * minute
const longest = 366 * day

/**
 * Reads the rule of a beat.
 *
 * @param names the names that `to` may use; without it, they are not checked
 * @throws RelayError `bad-request`, which names the field
 */
export function parseBeat(name: string, value: unknown, names?: TargetNames): BeatRule {
  demand(isName(name), nameRule)
  demand(isObject(value), say('beat-object', { example: '{every: 1d, grace: 1h, to: ops}' }))
  const { every, cron, zone, grace, to, severity = 'warning', ...others } = withoutNull(value)
  refuseFields('beats', Object.keys(others))
  demand((every === undefined) !== (cron === undefined), say('every-or-cron'))
  demand(zone === undefined || (cron !== undefined && typeof zone === 'string' && isZone(zone)), say('zone-with-cron'))
  const level = severities.find(each => each === severity)
  demand(level !== undefined && level !== 'ok', say('severity-of-beat'))
  const rule: BeatRule = {
    name, zone: zone ?? ownZone(), severity: level, to: readTargets(to, names),
    grace: grace === undefined ? usualGrace : readDuration(grace, 0, 'grace'),
    ...every === undefined ? { cron: readCron(cron) } : { every: readDuration(every, 1000, 'every') },
  }
  demand(following(rule, 0, Date.now()) !== undefined, say('cron-never'))
  return rule
}

/** The schedule of a rule, to be compared. */
export function scheduleOf({ every, cron, zone }: BeatRule): string {
  return cron === undefined ? `every ${every}` : `${cron} ${zone}`
}

/**
 * When the next sign is due after a time; `undefined` if never.
 *
 * @param last from when `every` counts
 */
export function following({ every, cron, zone }: BeatRule, last: number, after: number): number | undefined {
  if (every !== undefined) return last + (Math.floor(Math.max(after - last, 0) / every) + 1) * every
  return cron === undefined ? undefined : new Cron(cron, { mode: '5-part', timezone: zone }).nextRun(new Date(after))?.getTime()
}

function readDuration(value: unknown, least: number, name: string): number {
  const span = parseDuration(value)
  demand(span !== undefined && span >= least && span <= longest, say('duration-from', { field: name, least: least / 1000 }))
  return span
}

function readCron(value: unknown): string {
  try {
    const cron = typeof value === 'string' ? value : ''
    new Cron(cron, { mode: '5-part' })
    return cron
  } catch {
    throw new RelayError('bad-request', say('cron-fields'))
  }
}

function readTargets(value: unknown, names: TargetNames | undefined): readonly string[] {
  const to = readList(value) ?? []
  demand(to.length > 0, say('to-of-beat'))
  try {
    if (names) parseDestinations(to, {}, names)
    return to
  } catch (error) {
    const { said, status } = RelayError.from(error)
    throw status < 500 ? new RelayError('bad-request', clauses('to', said)) : error
  }
}
