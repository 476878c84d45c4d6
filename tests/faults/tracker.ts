import type { Call, Fault, FaultHandle } from '../../simulator'
import type { Plan } from './plan'
import type { World } from './world'

const sending = /^(?:send|upload)_/
const asking = '_msg_history'

/** Applies the faults and disturbances of a plan to its world, and counts them. */
export class Tracker {
  /** The number of faults by kind. */
  readonly hits = new Map<string, number>()
  /** The number of the plan's calls that send something. */
  sends = 0
  private calls = 0
  private answers = 0
  private readonly handles: FaultHandle[] = []
  /** The number of calls by kind and target. */
  private readonly counts = new Map<string, number>()
  private readonly targets: ReadonlyMap<string, number>

  constructor(private readonly plan: Plan, private readonly world: World) {
    this.targets = new Map(plan.targets.map(({ id }, index) => [id, index]))
    const pending = new Map(plan.faults.map(({ target, about, nth, fault }) => [`${about} ${target} ${nth}`, fault]))
    let struck: Fault | undefined
    // The first rule inspects every call, and selects the fault that the following rules apply.
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

  /** Must be called for each answer that a caller gets. */
  countAnswer(): void {
    this.answers++
    this.disturb('answer', this.answers)
  }

  count(kind: string): void {
    this.hits.set(kind, (this.hits.get(kind) ?? 0) + 1)
  }

  /** Removes the faults. */
  end(): void {
    for (const handle of this.handles) handle.remove()
  }

  private look({ action, params }: Call, pending: ReadonlyMap<string, Fault>): Fault | undefined {
    const target = this.targets.get(String(params.group_id ?? params.user_id))
    const about = sending.test(action) ? 'send' : action.endsWith(asking) ? 'history' : undefined
    if (target === undefined || about === undefined) return
    const nth = (this.counts.get(`${about} ${target}`) ?? 0) + 1
    this.counts.set(`${about} ${target}`, nth)
    const fault = pending.get(`${about} ${target} ${nth}`)
    if (about === 'send') this.sends++
    if (fault) this.count(`${about} ${fault.kind}`)
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
      // A failure of the disturbance shows when the world settles.
      void this.world.disturb(moment.what).catch(() => undefined)
    }
  }
}
