import { parseId } from './parse'
import type { Call, Fault, FaultHandle, FaultRule } from './types'

/** The actions that put something into a chat. */
export const sends = /^(send_|upload_)/

/** The scripted faults, in order of registration. */
export class FaultBook {
  private live: { rule: FaultRule, hits: number }[] = []

  /** Adds a rule; the handle counts its hits and takes it out again. */
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

  /** The fault that strikes a call, used up by one. */
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
  // `search` rather than `test`: a global expression must not remember where it was.
  const named = typeof action === 'string' ? action === call.action : call.action.search(action) >= 0
  if (!named) return false
  if (target !== undefined && (parseId(call.params.group_id) ?? parseId(call.params.user_id)) !== target) return false
  return match === undefined || match(call)
}
