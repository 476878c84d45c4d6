import type { Context } from 'koishi'
import { unwrap } from '../lib/unwrap'
import type { Delivery } from '../relay/delivery/delivery'
import type { CallOutcome, LookUp } from '../relay/relay'
import { createInstruments } from './instruments'
import { Recorder, type Events, type Sources } from './recorder'

/** How long after the first event prom-client is loaded, in milliseconds: that takes some tens, which no message is to wait for. */
const loadDelay = 1_000

const known = new WeakMap<object, Metrics>()

/**
 * Counts what happens, for `GET /metrics`. There is one for an app: it outlives a reload of the plugin, as the relay does. Of prom-client
 * nothing is loaded before something happens, so that the start does not wait for it.
 */
export class Metrics implements Events {
  private recorder: Recorder | undefined
  private loading: Promise<Recorder> | undefined
  private timer: NodeJS.Timeout | undefined
  /** What has happened before there was a recorder. */
  private readonly early: ((recorder: Recorder) => void)[] = []

  /** @param doors all that have a label of their own, as `Submission.door` has them */
  private constructor(private readonly doors: readonly string[]) {}

  /** The metrics of the app that a context belongs to. */
  static of(ctx: Context, doors: readonly string[]): Metrics {
    const app = unwrap(ctx.root)
    const metrics = known.get(app) ?? new Metrics(doors)
    known.set(app, metrics)
    return metrics
  }

  ended(delivery: Delivery, time: number): void {
    if (this.recorder) this.recorder.ended(delivery, time)
    else this.keepEnded({ ...delivery }, time)
  }

  called(outcome: CallOutcome, time: number): void {
    if (this.recorder) this.recorder.called(outcome, time)
    else this.keep(recorder => recorder.called(outcome, time))
  }

  lookedUp(finding: LookUp): void {
    if (this.recorder) this.recorder.lookedUp(finding)
    else this.keep(recorder => recorder.lookedUp(finding))
  }

  paused(): void {
    if (this.recorder) this.recorder.paused()
    else this.keep(recorder => recorder.paused())
  }

  answered(route: string, method: string | undefined, status: number): void {
    if (this.recorder) this.recorder.answered(route, method, status)
    else this.keep(recorder => recorder.answered(route, method, status))
  }

  received(files: number, bytes: number): void {
    if (this.recorder) this.recorder.received(files, bytes)
    else this.keep(recorder => recorder.received(files, bytes))
  }

  /** All metrics as Prometheus reads them, and their Content-Type. */
  async read(sources: Sources): Promise<{ type: string, body: string }> {
    const recorder = await this.load()
    return recorder.read(sources)
  }

  /** @param delivery a copy: it may be sent again meanwhile */
  private keepEnded(delivery: Delivery, time: number): void {
    this.keep(recorder => recorder.ended(delivery, time))
  }

  private keep(event: (recorder: Recorder) => void): void {
    this.early.push(event)
    this.timer ??= setTimeout(() => void this.load().catch(() => undefined), loadDelay).unref()
  }

  private load(): Promise<Recorder> {
    return this.loading ??= import('prom-client').then(prometheus => {
      clearTimeout(this.timer)
      const recorder = this.recorder = new Recorder(createInstruments(prometheus), this.doors)
      for (const event of this.early.splice(0)) event(recorder)
      return recorder
    }, (error: unknown) => {
      // It is tried again with what comes next.
      this.loading = this.timer = undefined
      this.early.length = 0
      throw error
    })
  }
}
