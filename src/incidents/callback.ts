import type { HTTP } from 'koishi'
import { LRUCache } from 'lru-cache'
import { Mutex } from '../lib/async'
import { hash } from '../lib/crypto'
import { networkReason, parseEndpoint, postJson } from '../lib/endpoint'
import { hour, minute, toIso } from '../lib/time'
import { signatureHeaders } from '../lib/webhook-signature'
import type { Ack } from '../message/model'
import type { Clock } from '../relay/clock'
import type { Incident, TimelineEntry } from './incident'
import { viewEntry, viewIncident } from './views'
import { say, type Text } from '../texts/text'
import type { Log } from '../lib/log'

/** What is posted to the callback. */
const posted: ReadonlySet<TimelineEntry['kind']> = new Set(['opened', 'taken', 'silenced', 'released', 'escalated', 'resolved'])
/** How long an entry is posted again while the callback does not take it, in milliseconds. */
const patience = hour
/** The pause of an incident after its first failure, and the longest one, in milliseconds. */
const firstPause = 1_000
const longestPause = 5 * minute
/** How many entries are remembered, so that they are told once while the relay runs. */
const remembered = 20_000

/** Somebody who hears of each entry: the plugins of the bot, and the metrics. Must not throw. */
export type Hearer = (incident: Incident, entry: TimelineEntry) => void

export interface CallbackOptions {
  /** Empty for none. */
  url: string
  /** For the signature; empty for none. */
  secret: string
  /** The time for each exchange, in milliseconds. */
  timeout: number
  stop: AbortSignal
  clock: Clock
  http?: () => HTTP
  logger: Pick<Log, 'warn'>
  hearers: readonly Hearer[]
  /** The present rules of a name. */
  ackOf: (name: string) => Ack | undefined
}

/**
 * Tells what happened to incidents: each entry to the hearers, and most kinds to the operator's callback, one post at a time, by the
 * Standard Webhooks specification. An entry is posted until the callback answers 2xx, after growing pauses, for an hour. Later ones of its
 * incident wait meanwhile, those of others do not. `webhook-id` is made of the incident and the entry, so it is the same when an entry
 * is posted again, also after a restart.
 */
export class Callback {
  private readonly endpoint
  private readonly told = new LRUCache<string, 'heard' | 'posted'>({ max: remembered })
  /** The incidents with a post under way, or with a pause until a time on the monotonic clock. */
  private readonly pauses = new Map<string, { failures: number, until: number }>()
  private readonly turn = new Mutex()
  /** When the log last told of a failure, on the monotonic clock. */
  private reported = -Infinity

  constructor(private readonly options: CallbackOptions) {
    this.endpoint = parseEndpoint(options.url)
  }

  /**
   * Tells the newest entries of an incident. Does not wait for the callback: call it again until it returns true.
   *
   * @returns whether all were told, or given up
   */
  tell(incident: Incident, entries: readonly TimelineEntry[]): boolean {
    const events = entries.map(entry => ({ entry, id: idOf(incident, entry) }))
    for (const { entry, id } of events) {
      if (this.told.has(id)) continue
      this.told.set(id, 'heard')
      for (const hear of this.options.hearers) hear(incident, entry)
    }
    const open = events.filter(({ entry, id }) => this.endpoint && posted.has(entry.kind) && this.told.get(id) !== 'posted')
    if (open.length === 0) {
      this.pauses.delete(incident.id)
      return true
    }
    const { failures = 0, until = 0 } = this.pauses.get(incident.id) ?? {}
    if (this.options.clock.now() >= until) {
      this.pauses.set(incident.id, { failures, until: Infinity })
      void this.turn.run('', () => this.postAll(incident, open, failures))
    }
    return false
  }

  /** Posts entries of an incident in their order, up to the first failure. */
  private async postAll(incident: Incident, events: readonly Event[], failures: number): Promise<void> {
    const { stop, logger, clock } = this.options
    for (const event of events) {
      const { entry: { kind, at }, id } = event
      const isOld = clock.wall() - at > patience
      const failure = isOld ? undefined : await this.post(incident, event)
      if (stop.aborted) return
      if (failure !== undefined) {
        if (clock.now() - this.reported >= minute) {
          this.reported = clock.now()
          logger.warn(say('incident-callback-failed', { id: incident.id, failure }))
        }
        const pause = Math.min(firstPause * 2 ** failures, longestPause)
        this.pauses.set(incident.id, { failures: failures + 1, until: clock.now() + pause })
        return
      }
      if (isOld) logger.warn(say('incident-callback-given-up', { id: incident.id, kind }))
      this.told.set(id, 'posted')
    }
    this.pauses.delete(incident.id)
  }

  /** @returns why the callback did not take it */
  private async post(incident: Incident, { entry, id }: Event): Promise<Text | undefined> {
    const { endpoint, options: { secret, http, timeout, stop, ackOf, clock } } = this
    if (!endpoint) return
    const body = JSON.stringify({
      type: `incident.${entry.kind}`, timestamp: toIso(entry.at),
      data: { incident: viewIncident(incident, ackOf(incident.name)), entry: viewEntry(entry) },
    })
    const headers = { 'webhook-id': id, ...secret && signatureHeaders(secret, { id, time: clock.wall(), body }) }
    const read = ({ ok, status }: Response): Text | undefined => ok ? undefined : say('status-code', { status })
    return postJson(endpoint, body, { ...http && { http: http() }, headers, timeout, stop }, read).catch(networkReason)
  }
}

interface Event { entry: TimelineEntry, id: string }

/** The same whenever the entry is told. Without dots, which separate the signed parts. */
function idOf({ id }: Incident, entry: TimelineEntry): string {
  return `${id}-${hash(JSON.stringify(entry)).slice(0, 16)}`
}
