import { parseId } from './parse'
import type { Call, Fault, FaultHandle, FaultRule } from './types'

/** The actions that add a message or a file to a chat. */
export const sends = /^(send_|upload_)/

/** The scripted faults, in order of registration. */
export class FaultBook {
  private live: { rule: FaultRule, hits: number }[] = []

  /** Adds a rule. The handle counts its hits and removes it. */
  add(rule: FaultRule): FaultHandle {
    const entry = { rule, hits: 0 }
    this.live.push(entry)
    return {
      get hits() {
        return entry.hits
      },
      remove: () => {
        this.live = this.live.filter(other => other !== entry)
      },
    }
  }

  clear(): void {
    this.live = []
  }

  /** The fault for a call. Counts as a hit of its rule. */
  strike(call: Call): Fault | null {
    if (this.live.length === 0) return null
    const entry = this.live.find(({ rule }) => matches(rule, call))
    if (entry === undefined) return null
    entry.hits++
    if (entry.hits >= (entry.rule.times ?? 1)) this.live = this.live.filter(other => other !== entry)
    return entry.rule.fault
  }
}

function matches({ action = sends, target, match }: FaultRule, call: Call): boolean {
  // `search` instead of `test`, because `test` on a global expression keeps its last position.
  const named = typeof action === 'string' ? action === call.action : call.action.search(action) >= 0
  if (!named) return false
  if (target !== undefined && (parseId(call.params.group_id) ?? parseId(call.params.user_id)) !== target) return false
  return match === undefined || match(call)
}
