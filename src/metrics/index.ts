import type { Context } from 'koishi'
import { unwrap } from '../lib/koishi'
import { outcomeOf, type Delivery } from '../relay/delivery'
import type { Backlog, CallOutcome, LaneState, LookUp, Observer } from '../relay/relay'
import { createInstruments } from './instruments'

/** What is asked when the metrics are read. */
export interface Sources {
  bots: () => readonly { status: string }[]
  queues: () => readonly LaneState[]
  /** How many may wait in a queue. */
  capacity: number
  /** What waits to be sent later; `undefined` without a database. */
  backlog: () => Backlog | undefined
  /** How many requests were refused for each reason, since the plugin was loaded. */
  refusals: () => ReadonlyMap<string, number>
}

const outcomes = ['sent', 'refused', 'unsent', 'unanswered', 'expired'] as const
const callOutcomes = ['sent', 'refused', 'suppressed', 'unsent', 'unanswered'] as const satisfies CallOutcome[]
const findings = ['found', 'local', 'absent', 'inconclusive', 'no-history', 'silent'] as const satisfies LookUp[]
const botStates = ['online', 'connecting', 'offline', 'restricted']
const reasons = ['unauthorized', 'forbidden', 'rate-limited']
/** The places of ways that are there before they are needed; a name rarely has more. */
const usualPlaces = ['1', '2', '3']

/** The labels of doors without one of their own: templates of an operator, and records of an earlier release. */
const templateDoor = 'hooks/template'
const unknownDoor = 'unknown'

const known = new WeakMap<object, Metrics>()

/** Counts what happens, for `GET /metrics`. There is one for an app: it outlives a reload of the plugin, as the relay does. */
export class Metrics implements Observer {
  private readonly instruments = createInstruments()
  private readonly doors: ReadonlySet<string>

  /** @param doors all that have a label of their own, as `Submission.door` has them */
  constructor(doors: readonly string[]) {
    this.doors = new Set([...doors, templateDoor, unknownDoor])
    const { deliveries, callTime, lookUps, ways } = this.instruments
    // Series are there before they are needed, so that a first failure is seen as one more than none.
    for (const door of this.doors) for (const outcome of outcomes) deliveries.inc({ door, outcome }, 0)
    for (const outcome of callOutcomes) callTime.zero({ outcome })
    for (const finding of findings) lookUps.inc({ finding }, 0)
    for (const place of usualPlaces) ways.inc({ place }, 0)
  }

  /** The metrics of the app that a context belongs to. */
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

  lookedUp(finding: LookUp): void {
    this.instruments.lookUps.inc({ finding })
  }

  paused(): void {
    this.instruments.pauses.inc()
  }

  /**
   * A request was answered.
   *
   * @param method `undefined` where its path has no such method
   */
  answered(route: string, method: string | undefined, status: number): void {
    this.instruments.requests.inc({ route, method: method ?? 'other', status })
  }

  /** A request has brought so many files, of so many bytes together. */
  received(files: number, bytes: number): void {
    this.instruments.uploads.inc(files)
    this.instruments.uploadBytes.inc(bytes)
  }

  /** Asks for what is true now, and gives all metrics as Prometheus reads them, with their Content-Type. */
  async read(sources: Sources): Promise<{ type: string, body: string }> {
    const { registry, bots, refusals, capacity, waiting, longest, paused, closed, scheduled, held, outbox, oldest } = this.instruments
    const states = sources.bots()
    for (const status of botStates) bots.set({ status }, states.filter(bot => bot.status === status).length)
    refusals.reset()
    for (const reason of reasons) refusals.inc({ reason }, sources.refusals().get(reason) ?? 0)
    capacity.set(sources.capacity)
    const queues = sources.queues()
    const backlog = sources.backlog()
    const lengths = queues.map(queue => queue.waiting)
    waiting.set(lengths.reduce((sum, length) => sum + length, 0))
    longest.set(Math.max(...lengths, 0))
    paused.set(queues.filter(({ pausedUntil }) => pausedUntil !== undefined).length)
    closed.set(queues.filter(({ hold }) => hold).length)
    scheduled.set(queues.reduce((sum, { later }) => sum + (later?.kinds.scheduled ?? 0), 0))
    held.reset()
    for (const reason of ['quiet', 'digest']) held.set({ reason }, 0)
    for (const { hold, waiting, later } of queues) {
      const { quiet, digest } = later?.kinds ?? { quiet: 0, digest: 0 }
      held.inc({ reason: 'quiet' }, quiet)
      held.inc({ reason: 'digest' }, digest)
      if (hold) held.inc({ reason: hold.cause }, waiting - quiet - digest)
    }
    if (backlog) outbox.set(backlog.size)
    else outbox.remove()
    const now = Date.now()
    const since = Math.min(now, ...[...queues, backlog].flatMap(each => each?.oldest ?? []))
    oldest.set((now - since) / 1000)
    return { type: registry.contentType, body: await registry.metrics() }
  }
}
