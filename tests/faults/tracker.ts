import type { Call, Fault, FaultHandle } from '../../simulator'
import type { Plan } from './plan'
import type { World } from './world'

const sending = /^(?:send|upload)_/
const asking = '_msg_history'

/** Puts the faults and disturbances of a plan into its world, and counts what they strike. */
export class Tracker {
  /** How often each kind of fault struck. */
  readonly hits = new Map<string, number>()
  /** How many calls of the plan sent something. */
  sends = 0
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
      // What fails in it shows when the world is to settle.
      void this.world.disturb(moment.what).catch(() => undefined)
    }
  }
}
