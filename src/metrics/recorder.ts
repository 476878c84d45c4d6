import type { Counter } from 'prom-client'
import { inTime } from '../lib/async'
import { outcomeOf, type Delivery } from '../relay/delivery/delivery'
import type { Backlog, CallOutcome, LookUp, Observer, QueueState } from '../relay/relay'
import type { Instruments } from './instruments'

/** What is asked when the metrics are read. */
export interface Sources {
  bots: () => readonly { status: string }[]
  queues: () => readonly QueueState[]
  /** How many may wait in a queue. */
  capacity: number
  /** What waits in the database, `undefined` where there is none. Rejects when it does not answer. */
  backlog: () => Promise<Backlog | undefined>
  /** How many requests were refused for each reason, since the plugin was loaded. */
  refusals: () => ReadonlyMap<string, number>
}

/** Everything that is counted when it happens. */
export interface Events extends Observer {
  /** A request was answered; `method` is `undefined` where its path has no such method. */
  answered: (route: string, method: string | undefined, status: number) => void
  /** A request has brought so many files, of so many bytes together. */
  received: (files: number, bytes: number) => void
}

const outcomes = ['sent', 'refused', 'unsent', 'unanswered', 'expired'] as const
type DeliveryOutcome = typeof outcomes[number]

const callOutcomes = ['sent', 'refused', 'suppressed', 'unsent', 'unanswered'] as const satisfies CallOutcome[]
const findings = ['found', 'absent', 'inconclusive', 'no-history', 'silent'] as const satisfies LookUp[]
const botStates = ['online', 'connecting', 'reconnecting', 'disconnecting', 'offline']
const reasons = ['unauthorized', 'forbidden', 'rate-limited']

/** The labels of doors that have none of their own: those that an operator has named, and those of records that an earlier release made. */
const templateDoor = 'hooks/template'
const unknownDoor = 'unknown'
/** How long the database may take to tell what waits in it, in milliseconds: the rest is wanted most when it does not answer. */
const patience = 1_000

/** What is counted of one door. */
interface DoorInstruments {
  ended: ReadonlyMap<DeliveryOutcome, Counter.Internal>
  time: { observe: (seconds: number) => void }
}

/** Turns what happens into metrics. Series are there before they are needed, so that a first failure is seen as one more than none. */
export class Recorder implements Events {
  private readonly doors: ReadonlyMap<string, DoorInstruments>
  private readonly calls: ReadonlyMap<CallOutcome, DoorInstruments['time']>
  private readonly lookUps: ReadonlyMap<LookUp, Counter.Internal>

  /** @param doors all that have a label of their own, as `Submission.door` has them */
  constructor(private readonly instruments: Instruments, doors: readonly string[]) {
    const { callTime, lookUps } = instruments
    this.doors = new Map([...doors, templateDoor, unknownDoor].map(door => [door, this.openDoor(door)]))
    this.calls = new Map(callOutcomes.map(outcome => {
      callTime.zero({ outcome })
      return [outcome, callTime.labels(outcome)]
    }))
    this.lookUps = new Map(findings.map(finding => [finding, lookUps.labels(finding)]))
    for (const count of this.lookUps.values()) count.inc(0)
  }

  ended(delivery: Delivery, time: number): void {
    const outcome = judge(delivery)
    const door = this.doors.get(delivery.door) ?? this.doors.get(delivery.door.startsWith('hooks/') ? templateDoor : unknownDoor)
    door?.ended.get(outcome)?.inc()
    if (outcome === 'sent') door?.time.observe(Math.max(time, 0) / 1000)
  }

  called(outcome: CallOutcome, time: number): void {
    this.calls.get(outcome)?.observe(time / 1000)
  }

  lookedUp(finding: LookUp): void {
    this.lookUps.get(finding)?.inc()
  }

  paused(): void {
    this.instruments.pauses.inc()
  }

  answered(route: string, method = 'other', status: number): void {
    this.instruments.requests.inc({ route, method, status })
  }

  received(files: number, bytes: number): void {
    this.instruments.uploads.inc(files)
    this.instruments.uploadBytes.inc(bytes)
  }

  /** Asks for what is true now, and gives all of it as Prometheus reads it. */
  async read(sources: Sources): Promise<{ type: string, body: string }> {
    const { registry, bots, refusals, capacity } = this.instruments
    const states = sources.bots()
    for (const status of botStates) bots.set({ status }, states.filter(bot => bot.status === status).length)
    refusals.reset()
    for (const reason of reasons) refusals.inc({ reason }, sources.refusals().get(reason) ?? 0)
    capacity.set(sources.capacity)
    this.measure(sources.queues(), await inTime(sources.backlog, patience))
    return { type: registry.contentType, body: await registry.metrics() }
  }

  /** @param backlog `undefined` where it is not known */
  private measure(queues: readonly QueueState[], backlog: Backlog | undefined): void {
    const { waiting, longest, paused, outbox, oldest } = this.instruments
    const lengths = queues.map(queue => queue.waiting)
    waiting.set(lengths.reduce((sum, length) => sum + length, 0))
    longest.set(Math.max(...lengths, 0))
    paused.set(queues.filter(({ pausedUntil }) => pausedUntil !== undefined).length)
    if (backlog) outbox.set(backlog.size)
    else outbox.remove()
    const now = Date.now()
    const since = [...queues.map(queue => queue.oldest), backlog?.oldest].reduce<number>((first, time = now) => Math.min(first, time), now)
    oldest.set((now - since) / 1000)
  }

  private openDoor(door: string): DoorInstruments {
    const { deliveries, deliveryTime } = this.instruments
    const ended = new Map(outcomes.map(outcome => [outcome, deliveries.labels(door, outcome)]))
    for (const count of ended.values()) count.inc(0)
    return { ended, time: deliveryTime.labels(door) }
  }
}

/** What became of a delivery as a whole: of its items, the worst counts. */
function judge({ state, results }: Delivery): DeliveryOutcome {
  if (state === 'sent' || state === 'unanswered' || state === 'expired') return state
  return results.some(result => outcomeOf(result) === 'refused') ? 'refused' : 'unsent'
}
