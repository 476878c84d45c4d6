import type { Call, Fault, FaultHandle } from '../../simulator'
import type { Kind } from './kind'
import type { Disturbance, Plan } from './plan'
import type { World } from './world'

/** A call that was meant to bring something into a chat. */
export interface TrackedCall {
  call: Call
  /** What struck it. */
  fault?: Fault
}

const sending = /^(?:send|upload)_/
const asking = '_msg_history'

/** Puts the faults of a plan into its world, and keeps an account of what they strike. */
export class Tracker {
  /** The calls of the plan that sent something. */
  readonly sends: TrackedCall[] = []
  /** How often each kind of fault struck. */
  readonly hits = new Map<string, number>()
  /** How many calls there were. */
  private calls = 0
  private answers = 0
  private readonly handles: FaultHandle[] = []
  /** How many calls of a sort there were to a target. */
  private readonly counts = new Map<string, number>()
  private readonly targets: ReadonlyMap<string, number>

  constructor(private readonly plan: Plan, private readonly world: World) {
    this.targets = new Map(plan.targets.map(({ id }, index) => [id, index]))
    const pending = new Map(plan.faults.map(({ target, about, nth, fault }) => [`${about} ${target} ${nth}`, fault]))
    let struck: Fault | undefined
    // The first rule looks at every call, and says to the following ones what is to strike it.
    this.handles.push(world.simulator.fault({
      fault: { kind: 'silent' }, action: /./, times: Infinity,
      match: call => {
        struck = this.look(call, pending)
        return false
      },
    }))
    for (const fault of new Set(pending.values())) {
      this.handles.push(world.simulator.fault({ fault, action: /./, times: Infinity, match: () => struck === fault }))
    }
  }

  /** To be called for each answer that a caller got. */
  countAnswer(): void {
    this.answers++
    this.disturb('answer', this.answers)
  }

  count(kind: string): void {
    this.hits.set(kind, (this.hits.get(kind) ?? 0) + 1)
  }

  /** Takes the faults out again. */
  end(): void {
    for (const handle of this.handles) handle.remove()
  }

  private look(call: Call, pending: ReadonlyMap<string, Fault>): Fault | undefined {
    const target = this.targets.get(String(call.params.group_id ?? call.params.user_id))
    const about = sending.test(call.action) ? 'send' : call.action.endsWith(asking) ? 'history' : undefined
    if (target === undefined || about === undefined) return
    const nth = (this.counts.get(`${about} ${target}`) ?? 0) + 1
    this.counts.set(`${about} ${target}`, nth)
    const fault = pending.get(`${about} ${target} ${nth}`)
    if (about === 'send') this.sends.push({ call, ...fault && { fault } })
    if (fault) this.count(`${about === 'history' ? 'history ' : ''}${describe(fault)}`)
    this.calls++
    const number = this.calls
    this.disturb('before-call', number)
    setImmediate(() => this.disturb('after-call', number))
    return fault
  }

  private disturb(when: string, nth: number): void {
    for (const moment of this.plan.moments) {
      if (moment.when !== when || moment.nth !== nth) continue
      this.count(moment.what.kind)
      // What fails in it shows when the world is to settle.
      void this.world.disturb(this.here(moment.what)).catch(() => undefined)
    }
  }

  /** What is still open of another plan is looked for in a history that is as that plan has it. */
  private here(what: Disturbance): Disturbance {
    return what.kind === 'restart' ? { ...what, chats: [...this.targets.keys()] } : what
  }
}

function describe(fault: Fault): string {
  if (fault.kind === 'close') return `close ${fault.when}`
  if (fault.kind === 'late') return { now: 'late', then: 'slow', never: 'slow refusal' }[fault.delivered ?? 'now']
  if (fault.kind === 'answer') return 'unreadable'
  return fault.kind === 'timeout' ? `timeout${fault.delivered ? ', delivered' : ''}` : fault.kind
}

const unansweredKinds: readonly Fault['kind'][] = [
  'silent', 'lost-answer', 'late', 'timeout', 'answer', 'hold', 'close', 'refuse', 'muted', 'not-member',
]

/** Whether a call is carried out so late that the relay may have called again, or gone on, before. */
export function isTooSlow(fault: Fault | undefined, { settle }: Pick<Kind, 'settle'>): boolean {
  return fault?.kind === 'late' && fault.delivered === 'then' && fault.ms >= settle * 0.95
}

/** Whether a call with this fault may have gone unanswered. */
export function isUnanswered(fault: Fault | undefined): boolean {
  return fault !== undefined && unansweredKinds.includes(fault.kind)
}
