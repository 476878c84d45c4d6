import { sends } from './faults'
import { parseId } from './parse'
import type { Call, Fault, Target } from './types'

/** How long a slow send takes, in milliseconds: long enough to be seen, shorter than a relay waits by default. */
const slowness = 5_000

/** Where each switch can be turned: for the whole platform, for a group, for a private chat. */
const places = {
  /** A target that does not exist is created instead of refused. */
  anyTarget: ['all'],
  /** No bot is connected, and none can connect. */
  offline: ['all'],
  /** Sends arrive, and are answered, after `slowness`. */
  slow: ['all', 'group', 'private'],
  /** Sends are refused, as the profile words it. */
  refusing: ['all', 'group', 'private'],
  /** The bot is muted, as the profile words it. */
  muted: ['group'],
} as const satisfies Record<string, readonly ('all' | Target['type'])[]>

/** The name of a switch. */
export type SwitchName = keyof typeof places

/** A switch at its place; `target` is null for the whole platform. */
export interface Switch { name: SwitchName, target: Target | null }

/** What somebody has turned on to see how a caller gets along with it. Nothing turns it off again by itself. */
export class Switches {
  private readonly on = new Map<string, Switch>()

  /** @param onChange told after every change */
  constructor(private readonly onChange: () => void) {}

  /** Everything that is on, in the order in which it was turned on. */
  get list(): readonly Switch[] {
    return [...this.on.values()]
  }

  /** Turns a switch. */
  turn({ name, target }: Switch, on: boolean): void {
    const key = keyOf(name, target)
    if (this.on.has(key) === on) return
    if (on) this.on.set(key, { name, target })
    else this.on.delete(key)
    this.onChange()
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
    if (holds('slow')) return { kind: 'late', ms: slowness, delivered: refusing ? 'never' : 'then' }
    return refusing ? { kind: 'refuse' } : null
  }
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
