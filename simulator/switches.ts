import { sends } from './faults'
import { parseId, parseInteger } from './parse'
import type { Timers } from './timers'
import type { Call, Fault, Target } from './types'

/** How long a slow send takes, in milliseconds: long enough to be seen, shorter than a relay waits by default. */
const slowness = 5_000

/** How long a mute lasts unless told otherwise, and at most; in seconds. */
const defaultMute = 24 * 3600
const longestMute = 20 * defaultMute

/** Where each switch can be turned: for the whole platform, for a group, for a private chat. */
const places = {
  /** A target that does not exist is created instead of refused. */
  anyTarget: ['all'],
  /** No bot is connected, and none can connect. */
  offline: ['all'],
  /** The account is logged out: the profile tells it as it can, no message comes in, and sends are refused. The connections stay. */
  loggedOut: ['all'],
  /** Sends arrive, and are answered, after `slowness`. */
  slow: ['all', 'group', 'private'],
  /** Sends are refused, as the profile words it. */
  refusing: ['all', 'group', 'private'],
  /** Sends are taken, and seen by nobody. */
  swallowing: ['all', 'group', 'private'],
  /** Sends are refused because the group takes no more of them this minute, as the profile words it. */
  tooFast: ['group'],
  /** The bot is muted, as the profile words it, until the mute ends or is lifted. */
  muted: ['group'],
  /** Everybody is muted but for the admins and the owner. */
  allMuted: ['group'],
} as const satisfies Record<string, readonly ('all' | Target['type'])[]>

/** The name of a switch. */
export type SwitchName = keyof typeof places

/** A switch at its place; `target` is null for the whole platform. */
export interface Switch { name: SwitchName, target: Target | null }

/** A switch that is on; `until` when, in milliseconds since the epoch, where it turns itself off. */
export interface SwitchedOn extends Switch { until?: number }

/** Told after every change; `seconds` is how long a mute lasts, and null for a switch that has turned itself off. */
export type SwitchListener = (turned: Switch, on: boolean, seconds: number | null) => void

/** What somebody has turned on to see how a caller gets along with it. Only a mute ends by itself. */
export class Switches {
  private readonly on = new Map<string, SwitchedOn>()

  constructor(private readonly clock: () => number, private readonly timers: Timers, private readonly onChange: SwitchListener) {}

  /** Everything that is on, in the order in which it was turned on. */
  get list(): readonly SwitchedOn[] {
    return [...this.on.values()]
  }

  /** Turns a switch. Somebody who is muted can be muted anew, for another time. */
  turn({ name, target }: Switch, on: boolean, seconds = defaultMute): void {
    const key = keyOf(name, target)
    if (on && name === 'muted') this.mute(key, { name, target, until: this.clock() + seconds * 1000 }, seconds)
    else if (this.on.has(key) === on) return
    else if (on) this.on.set(key, { name, target })
    else this.on.delete(key)
    this.onChange({ name, target }, on, seconds)
  }

  /** When the switch turns itself off, 0 when it is off or does not. */
  until(name: SwitchName, target: Target): number {
    return this.on.get(keyOf(name, target))?.until ?? 0
  }

  /** Whether a switch is on at exactly this place. */
  isOn(name: SwitchName, target: Target | null): boolean {
    return this.on.size > 0 && this.on.has(keyOf(name, target))
  }

  /** What the switches do to a call, or null. */
  strike(call: Call): Fault | null {
    if (this.on.size === 0 || !sends.test(call.action)) return null
    const target = targetOf(call)
    const holds = (name: SwitchName): boolean => this.isOn(name, null) || (target !== null && this.isOn(name, target))
    const refusing = holds('refusing')
    if (holds('loggedOut')) return { kind: 'logged-out' }
    if (holds('tooFast')) return { kind: 'too-fast' }
    if (holds('swallowing') && !refusing) return { kind: 'swallowed' }
    if (holds('slow')) return { kind: 'late', ms: slowness, delivered: refusing ? 'never' : 'then' }
    return refusing ? { kind: 'refuse' } : null
  }

  private mute(key: string, muted: SwitchedOn, seconds: number): void {
    this.on.set(key, muted)
    this.timers.after(seconds * 1000, () => {
      if (this.on.get(key) !== muted) return
      this.on.delete(key)
      this.onChange(muted, false, null)
    })
  }
}

/** Reads how long a mute is to last; undefined when it was not said. */
export function parseSeconds({ name }: Switch, value: unknown): number | undefined | { error: string } {
  if (value === undefined) return undefined
  if (name !== 'muted') return { error: `${name} has no seconds` }
  const seconds = parseInteger(value)
  return seconds !== null && seconds > 0 && seconds <= longestMute ? seconds : { error: `seconds must be from 1 to ${longestMute}` }
}

/** Reads a switch out of `{ name, type, chat }`, the last two absent for the whole platform; or says what is wrong with it. */
export function parseSwitch({ name, type, chat }: Record<string, unknown>): Switch | { error: string } {
  if (!isSwitchName(name)) return { error: `name must be one of ${Object.keys(places).join(', ')}` }
  const where = type ?? 'all'
  const offered: readonly unknown[] = places[name]
  if (!offered.includes(where)) return { error: `${name} can be turned for ${offered.join(', ')}` }
  if (where !== 'group' && where !== 'private') return { name, target: null }
  const id = parseId(chat)
  return id === null ? { error: 'chat must be the id of a chat' } : { name, target: { type: where, id } }
}

function isSwitchName(name: unknown): name is SwitchName {
  return typeof name === 'string' && Object.hasOwn(places, name)
}

function keyOf(name: SwitchName, target: Target | null): string {
  return target === null ? name : `${name} ${target.type} ${target.id}`
}

/** The chat that a send is for; null when the call does not say it as it should. */
export function targetOf({ action, params }: Call): Target | null {
  const type = action === 'send_msg'
    ? params.message_type ?? (params.group_id === undefined ? 'private' : 'group')
    : action.includes('_group_') ? 'group' : 'private'
  const id = parseId(type === 'group' ? params.group_id : params.user_id)
  return id === null ? null : { type: type === 'group' ? 'group' : 'private', id }
}
