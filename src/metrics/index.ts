import type { Context } from 'koishi'
import { unwrap } from '../lib/koishi'
import { outcomeOf, type Delivery } from '../relay/delivery/delivery'
import type { CallOutcome } from '../relay/delivery/summary'
import type { Finding, Observer } from '../relay/options'
import type { Backlog, QueueState } from '../relay/queue/queue'
import { createInstruments } from './instruments'

/** The values that are read together with the metrics. */
export interface Sources {
  bots: () => readonly { status: string }[]
  queues: () => readonly QueueState[]
  /** The most requests that may wait in a queue. */
  capacity: number
  /** The deliveries that wait to be sent later; `undefined` on a standby. */
  backlog: () => Backlog | undefined
  /** The number of refused requests by reason, since the plugin was loaded. */
  refusals: () => ReadonlyMap<string, number>
  /** The number of incidents by state; `undefined` while the file cannot be read. */
  incidents: () => ReadonlyMap<string, number> | undefined
  /** The number of beats by state; `undefined` while the file cannot be read. */
  beats: () => ReadonlyMap<string, number> | undefined
}

const outcomes = ['sent', 'refused', 'unsent', 'unanswered', 'expired'] as const
const callOutcomes = ['sent', 'refused', 'suppressed', 'unsent', 'unanswered'] as const satisfies CallOutcome[]
const findings = ['found', 'local', 'absent', 'inconclusive', 'no-history', 'silent'] as const satisfies Finding['kind'][]
const botStates = ['online', 'connecting', 'offline', 'restricted']
const incidentStates = ['open', 'taken', 'silenced']
const beatStates = ['new', 'up', 'started', 'down', 'paused']
const reasons = ['unauthorized', 'forbidden', 'rate-limited']
/** The places of ways whose series exist from the start. A name rarely has more ways. */
const usualPlaces = ['1', '2', '3']

/** The labels of doors without a label of their own: sources that are not built in, and records of an earlier release. */
const templateDoor = 'hooks/template'
const unknownDoor = 'unknown'

const known = new WeakMap<object, Metrics>()

/** Collects the metrics for `GET /metrics`. There is one instance per app, which outlives a reload of the plugin, like the relay. */
export class Metrics implements Partial<Observer> {
  private readonly instruments = createInstruments()
  private readonly doors: ReadonlySet<string>

  /** @param doors the doors with a label of their own, in the form of `Submission.door` */
  constructor(doors: readonly string[]) {
    this.doors = new Set([...doors, templateDoor, unknownDoor])
    const { deliveries, callTime, lookUps, ways } = this.instruments
    // Series exist from the start, so that the first failure is visible as an increase from zero.
    for (const door of this.doors) for (const outcome of outcomes) deliveries.inc({ door, outcome }, 0)
    for (const outcome of callOutcomes) callTime.zero({ outcome })
    for (const finding of findings) lookUps.inc({ finding }, 0)
    for (const place of usualPlaces) ways.inc({ place }, 0)
  }

  /** Returns the metrics of the app of a context. */
  static of(ctx: Context, doors: readonly string[]): Metrics {
    const app = unwrap(ctx.root)
    const metrics = known.get(app) ?? new Metrics(doors)
    known.set(app, metrics)
    return metrics
  }

  ended({ door: given, state, results, flow: { members, route } }: Delivery, time: number): void {
    const { deliveries, digests, deliveryTime, ways } = this.instruments
    const door = this.doors.has(given) ? given : given.startsWith('hooks/') ? templateDoor : unknownDoor
    // The worst item counts.
    const outcome = state === 'sent' || state === 'unanswered' || state === 'expired'
      ? state
      : results.some(result => outcomeOf(result) === 'refused') ? 'refused' : 'unsent'
    deliveries.inc({ door, outcome })
    if (members) digests.observe(members.length)
    if (outcome !== 'sent') return
    deliveryTime.observe({ door }, Math.max(time, 0) / 1000)
    if (route) ways.inc({ place: String(route.index + 1) })
  }

  called(outcome: CallOutcome, time: number): void {
    this.instruments.callTime.observe({ outcome }, time / 1000)
  }

  lookedUp(finding: Finding['kind']): void {
    this.instruments.lookUps.inc({ finding })
  }

  paused(): void {
    this.instruments.pauses.inc()
  }

  /** Something happened to an incident, so many milliseconds after its begin. @param kind as in its timeline */
  happened(kind: string, time: number): void {
    const { takeTime, resolveTime, steps } = this.instruments
    if (kind === 'taken') takeTime.observe(Math.max(time, 0) / 1000)
    else if (kind === 'resolved') resolveTime.observe(Math.max(time, 0) / 1000)
    else if (kind === 'escalated') steps.inc()
  }

  /**
   * Counts an answered request.
   *
   * @param method `undefined` if the path does not support the method
   */
  answered(route: string, method: string | undefined, status: number): void {
    this.instruments.requests.inc({ route, method: method ?? 'other', status })
  }

  /** Counts the uploaded files of a request, and their bytes in all. */
  received(files: number, bytes: number): void {
    this.instruments.uploads.inc(files)
    this.instruments.uploadBytes.inc(bytes)
  }

  /** Reads the present values, and returns all metrics in the format of Prometheus, with the Content-Type. */
  async read(sources: Sources): Promise<{ type: string, body: string }> {
    const { registry, bots, refusals, capacity, waiting, longest, paused, closed, scheduled, held, outbox, oldest } = this.instruments
    const states = sources.bots()
    for (const status of botStates) bots.set({ status }, states.filter(bot => bot.status === status).length)
    refusals.reset()
    for (const reason of reasons) refusals.inc({ reason }, sources.refusals().get(reason) ?? 0)
    for (const [kind, known] of [['incidents', incidentStates], ['beats', beatStates]] as const) {
      const counts = sources[kind]()
      for (const state of known) {
        if (counts) this.instruments[kind].set({ state }, counts.get(state) ?? 0)
        else this.instruments[kind].remove({ state })
      }
    }
    capacity.set(sources.capacity)
    const queues = sources.queues()
    const backlog = sources.backlog()
    const lengths = queues.map(queue => queue.waiting)
    waiting.set(lengths.reduce((sum, length) => sum + length, 0))
    longest.set(Math.max(...lengths, 0))
    paused.set(queues.filter(({ state }) => state === 'paused').length)
    closed.set(queues.filter(({ state }) => state === 'held').length)
    scheduled.set(queues.reduce((sum, { later }) => sum + (later?.kinds.scheduled ?? 0), 0))
    held.reset()
    for (const reason of ['quiet', 'digest']) held.set({ reason }, 0)
    for (const { block, waiting, later } of queues) {
      const { quiet, digest } = later?.kinds ?? { quiet: 0, digest: 0 }
      held.inc({ reason: 'quiet' }, quiet)
      held.inc({ reason: 'digest' }, digest)
      if (block) held.inc({ reason: block.cause }, waiting - quiet - digest)
    }
    if (backlog) outbox.set(backlog.size)
    else outbox.remove()
    const now = Date.now()
    const since = Math.min(now, ...[...queues, backlog].flatMap(each => each?.oldest ?? []))
    oldest.set((now - since) / 1000)
    return { type: registry.contentType, body: await registry.metrics() }
  }
}
