import type { Context } from 'koishi'
import { unwrap } from '../lib/koishi'
import { outcomeOf, type Delivery } from '../relay/delivery'
import type { Backlog, CallOutcome, LaneState, LookUp, Observer } from '../relay/relay'
import { createInstruments, type Instruments } from './instruments'

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
/** How long after the first event prom-client is loaded, in milliseconds: loading takes some tens, and no message is to wait for it. */
const loadDelay = 1_000

const known = new WeakMap<object, Metrics>()

/**
 * Counts what happens, for `GET /metrics`. There is one for an app: it outlives a reload of the plugin, as the relay does. prom-client is
 * loaded after the first event, so that the start does not wait for it; until then the events are kept.
 */
export class Metrics implements Observer {
  private instruments: Instruments | undefined
  private loading: Promise<Instruments> | undefined
  private timer: NodeJS.Timeout | undefined
  /** The events from before prom-client was loaded. */
  private early: ((instruments: Instruments) => void)[] = []
  private readonly doors: ReadonlySet<string>

  /** @param doors all that have a label of their own, as `Submission.door` has them */
  constructor(doors: readonly string[]) {
    this.doors = new Set([...doors, templateDoor, unknownDoor])
  }

  /** The metrics of the app that a context belongs to. */
  static of(ctx: Context, doors: readonly string[]): Metrics {
    const app = unwrap(ctx.root)
    const metrics = known.get(app) ?? new Metrics(doors)
    known.set(app, metrics)
    return metrics
  }

  ended(delivery: Delivery, time: number): void {
    // Read at once: the delivery may be sent again before this is counted.
    const { state, results, flow: { members, route } } = delivery
    const door = this.doors.has(delivery.door) ? delivery.door : delivery.door.startsWith('hooks/') ? templateDoor : unknownDoor
    // The worst item counts.
    const outcome = state === 'sent' || state === 'unanswered' || state === 'expired'
      ? state
      : results.some(result => outcomeOf(result) === 'refused') ? 'refused' : 'unsent'
    this.count(({ deliveries, digests, deliveryTime, ways }) => {
      deliveries.inc({ door, outcome })
      if (members) digests.observe(members.length)
      if (outcome !== 'sent') return
      deliveryTime.observe({ door }, Math.max(time, 0) / 1000)
      if (route) ways.inc({ place: String(route.index + 1) })
    })
  }

  called(outcome: CallOutcome, time: number): void {
    this.count(({ callTime }) => callTime.observe({ outcome }, time / 1000))
  }

  lookedUp(finding: LookUp): void {
    this.count(({ lookUps }) => lookUps.inc({ finding }))
  }

  paused(): void {
    this.count(({ pauses }) => pauses.inc())
  }

  /**
   * A request was answered.
   *
   * @param method `undefined` where its path has no such method
   */
  answered(route: string, method: string | undefined, status: number): void {
    this.count(({ requests }) => requests.inc({ route, method: method ?? 'other', status }))
  }

  /** A request has brought so many files, of so many bytes together. */
  received(files: number, bytes: number): void {
    this.count(({ uploads, uploadBytes }) => {
      uploads.inc(files)
      uploadBytes.inc(bytes)
    })
  }

  /** Asks for what is true now, and gives all metrics as Prometheus reads them, with their Content-Type. */
  async read(sources: Sources): Promise<{ type: string, body: string }> {
    const { registry, bots, refusals, capacity, waiting, longest, paused, closed, scheduled, held, outbox, oldest } = await this.load()
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

  private count(event: (instruments: Instruments) => void): void {
    if (this.instruments) {
      event(this.instruments)
      return
    }
    this.early.push(event)
    this.timer ??= setTimeout(() => void this.load().catch(() => undefined), loadDelay).unref()
  }

  private load(): Promise<Instruments> {
    return this.loading ??= import('prom-client').then(prometheus => {
      clearTimeout(this.timer)
      const instruments = this.instruments = createInstruments(prometheus)
      const { deliveries, callTime, lookUps, ways } = instruments
      // Series are there before they are needed, so that a first failure is seen as one more than none.
      for (const door of this.doors) for (const outcome of outcomes) deliveries.inc({ door, outcome }, 0)
      for (const outcome of callOutcomes) callTime.zero({ outcome })
      for (const finding of findings) lookUps.inc({ finding }, 0)
      for (const place of usualPlaces) ways.inc({ place }, 0)
      for (const event of this.early.splice(0)) event(instruments)
      return instruments
    }, (error: unknown) => {
      // The next event tries it again.
      this.loading = this.timer = undefined
      this.early = []
      throw error
    })
  }
}
