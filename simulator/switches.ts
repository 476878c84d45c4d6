import { sends } from './faults'
import { parseId, parseInteger } from './parse'
import type { Timers } from './timers'
import type { Call, Fault, Target } from './types'

/** How long a slow send takes, in milliseconds: long enough to notice, shorter than a relay waits by default. */
const slowness = 5_000

/** The default and the longest length of a mute, in seconds. */
const defaultMute = 24 * 3600
const longestMute = 20 * defaultMute

/** Where each switch can be set: for the whole platform, for a group, for a private chat. */
const places = {
  /** A send to a target that does not exist creates it instead of being refused. */
  anyTarget: ['all'],
  /** No bot is connected, and none can connect. */
  offline: ['all'],
  /**
   * The account is logged out. The profile reports it as far as it can, no message comes in, and sends are refused. Connections stay open.
   */
  loggedOut: ['all'],
  /** Sends arrive and are answered after `slowness`. */
  slow: ['all', 'group', 'private'],
  /** Sends are refused with the profile's wording. */
  refusing: ['all', 'group', 'private'],
  /** Sends are accepted, but nobody sees the messages. */
  swallowing: ['all', 'group', 'private'],
  /** Sends are refused with the profile's wording, because the group has reached its limit per minute. */
  tooFast: ['group'],
  /** The bot is muted, with the profile's wording, until the mute ends or is lifted. */
  muted: ['group'],
  /** Everybody except the admins and the owner is muted. */
  allMuted: ['group'],
} as const satisfies Record<string, readonly ('all' | Target['type'])[]>

/** The name of a switch. */
export type SwitchName = keyof typeof places

/** A switch at its place; `target` is null for the whole platform. */
export interface Switch { name: SwitchName, target: Target | null }

/** A switch that is on. `until` is when it turns itself off, in milliseconds since the epoch, if it does. */
export interface SwitchedOn extends Switch { until?: number }

/** Called after every change. `seconds` is the length of a mute, and null if a switch has turned itself off. */
export type SwitchListener = (turned: Switch, on: boolean, seconds: number | null) => void

/** The switches that somebody has turned on to see how a caller copes. Only a mute ends by itself. */
export class Switches {
  private readonly on = new Map<string, SwitchedOn>()

  constructor(private readonly clock: () => number, private readonly timers: Timers, private readonly onChange: SwitchListener) {}

  /** All switches that are on, in the order in which they were turned on. */
  get list(): readonly SwitchedOn[] {
    return [...this.on.values()]
  }

  /** Sets a switch. A present mute can be replaced by one of another length. */
  turn({ name, target }: Switch, on: boolean, seconds = defaultMute): void {
    const key = keyOf(name, target)
    if (on && name === 'muted') this.mute(key, { name, target, until: this.clock() + seconds * 1000 }, seconds)
    else if (this.on.has(key) === on) return
    else if (on) this.on.set(key, { name, target })
    else this.on.delete(key)
    this.onChange({ name, target }, on, seconds)
  }

  /** When a switch turns itself off; 0 if it is off or does not. */
  until(name: SwitchName, target: Target): number {
    return this.on.get(keyOf(name, target))?.until ?? 0
  }

  /** Whether a switch is on at exactly this place. */
  isOn(name: SwitchName, target: Target | null): boolean {
    return this.on.size > 0 && this.on.has(keyOf(name, target))
  }

  /** The fault that the switches cause for a call, or null. */
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

/** Reads the length of a mute; undefined if it is absent. */
export function parseSeconds({ name }: Switch, value: unknown): number | undefined | { error: string } {
  if (value === undefined) return undefined
  if (name !== 'muted') return { error: `${name} has no seconds` }
  const seconds = parseInteger(value)
  return seconds !== null && seconds > 0 && seconds <= longestMute ? seconds : { error: `seconds must be from 1 to ${longestMute}` }
}

/** Reads a switch from `{ name, type, chat }`, the last two absent for the whole platform; or tells what is wrong with it. */
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

/** The target of a send; null if the call does not name it correctly. */
export function targetOf({ action, params }: Call): Target | null {
  const type = action === 'send_msg'
    ? params.message_type ?? (params.group_id === undefined ? 'private' : 'group')
    : action.includes('_group_') ? 'group' : 'private'
  const id = parseId(type === 'group' ? params.group_id : params.user_id)
  return id === null ? null : { type: type === 'group' ? 'group' : 'private', id }
}
