import type { Bot } from 'koishi'
import { createHash } from 'node:crypto'
import { chooseFutureBot, checkTarget, laneOf } from '../delivery/bots'
import type { Delivery } from '../delivery/delivery'
import type { Lanes } from '../delivery/lanes'
import type { ItemResult } from '../delivery/transmitter'
import { RelayError } from '../errors'
import type { WebhookRequest } from '../message/model'
import { itemsOf } from '../message/parse'
import { guard, insert, KeyedLedger } from './ledger'
import type { MemoryRecords } from './memory'
import type { Outbox } from './outbox'
import { finalState, usesUpKey, type DeliveryRecord } from './record'
import type { Storage } from './storage'

/** A request to send, with the wishes of its caller. */
export interface Submission {
  /** A UUIDv7. */
  id: string
  request: WebhookRequest
  /** The body as it was parsed from JSON. */
  body: unknown
  /** Its Idempotency-Key. */
  key?: string
  /** Whether to answer before it is delivered, and how long to wait for the result first, in milliseconds. */
  deferred?: { wait: number }
  /** Aborted when the caller has gone away. */
  signal: () => AbortSignal
}

/** What the caller is told. */
export interface Submitted {
  record: DeliveryRecord
  /** Whether it tells of an earlier request with the same key, and nothing was sent now. */
  replayed: boolean
}

export interface SubmissionsOptions {
  delivery: Delivery
  memory: MemoryRecords
  storage: () => Storage | undefined
  bots: Iterable<Bot>
  lanes: Lanes
  /** Keeps an uploaded file at least until then, in milliseconds since the epoch. */
  keepUpload: (id: string, until: number) => Promise<void>
}

interface Idempotency {
  key: string
  fingerprint: string
}

/** How long an Idempotency-Key lives, in milliseconds. */
const keyLifetime = 24 * 60 * 60 * 1000
/** After which time a deferred delivery is dropped unless the request says otherwise, in milliseconds. */
const defaultExpiry = 24 * 60 * 60 * 1000

/** Takes requests to send: once per Idempotency-Key, at once or later, and keeps an account of each. */
export class Submissions {
  /** The keys of requests under way, with the digests of their bodies. */
  private readonly underWay = new Map<string, string>()

  constructor(private readonly options: SubmissionsOptions) {}

  /**
   * Sends what a request asks for, unless its key says that this was done before.
   *
   * @throws RelayError what stops the request as such
   */
  async submit(submission: Submission): Promise<Submitted> {
    const { key } = submission
    if (key === undefined) return { record: await this.perform(submission, null), replayed: false }
    const fingerprint = createHash('sha256').update(JSON.stringify(submission.body)).digest('hex')
    const other = this.underWay.get(key)
    if (other !== undefined) throw keyConflict(other === fingerprint)
    this.underWay.set(key, fingerprint)
    try {
      const earlier = await this.findByKey(key)
      if (!earlier) return { record: await this.perform(submission, { key, fingerprint }), replayed: false }
      if (earlier.fingerprint !== fingerprint) throw keyConflict(false)
      if (earlier.state === 'sending' && !earlier.deferred) throw keyConflict(true)
      return { record: earlier, replayed: true }
    } finally {
      this.underWay.delete(key)
    }
  }

  private perform(submission: Submission, idempotency: Idempotency | null): Promise<DeliveryRecord> {
    return submission.deferred ? this.defer(submission, submission.deferred.wait, idempotency) : this.send(submission, idempotency)
  }

  /** Sends while the caller waits. */
  private async send({ id, request, signal }: Submission, idempotency: Idempotency | null): Promise<DeliveryRecord> {
    const { delivery, storage } = this.options
    const items = itemsOf(request)
    const record = createRecord(id, request, idempotency)
    const ledger = idempotency ? new KeyedLedger(idempotency.key, record, this.options.memory, storage()?.records) : undefined
    await ledger?.open()
    if (!ledger) this.options.memory.add(record)
    const close = (results: (ItemResult | undefined)[]): Promise<void> | undefined => {
      record.results = results
      record.state = finalState(results)
      record.updatedAt = Date.now()
      if (!usesUpKey(results)) record.key = null
      return ledger?.close()
    }
    try {
      const results = await delivery.deliver({
        target: request.target, bot: request.bot, items, signal,
        journal: {
          attempt: () => {
            record.attempts++
          },
          late: (indices, messageIds) => {
            void close(record.results.map((result, index) => indices.includes(index) ? { success: true, messageIds } : result))
          },
        },
      })
      await close(results)
      return record
    } catch (error) {
      const failure: ItemResult = { success: false, error: RelayError.from(error) }
      await close(items.map(() => failure))
      throw error
    }
  }

  /** Stores what is to be sent later, and waits a while for the result if the caller likes to. */
  private async defer({ id, request, body, signal }: Submission, wait: number, idempotency: Idempotency | null): Promise<DeliveryRecord> {
    const { bots, lanes, keepUpload } = this.options
    const storage = this.options.storage()
    if (!storage) throw new RelayError('no-database')
    const bot = chooseFutureBot(bots, request.bot)
    checkTarget(bot, request.target)
    const lane = laneOf(bot, request.target)
    if (!lanes.hasRoom(lane)) throw new RelayError('queue-full', undefined, { headers: { 'retry-after': '1' } })
    const record: DeliveryRecord = {
      ...createRecord(id, request, idempotency), state: 'queued', deferred: true, bot: bot.sid,
      expiresAt: Date.now() + (request.expiresIn ?? defaultExpiry),
    }
    for (const item of itemsOf(request)) {
      if ('link' in item && item.link.kind === 'upload') await keepUpload(item.link.id, record.expiresAt ?? 0)
    }
    await insert(storage.records, record, lane, body)
    const finished = wait > 0 ? waitFor(storage.outbox, id, wait, signal()) : undefined
    storage.outbox.drain(lane, id)
    return await finished ?? record
  }

  private async findByKey(key: string): Promise<DeliveryRecord | undefined> {
    const { memory } = this.options
    const oldest = Date.now() - keyLifetime
    const remembered = memory.findByKey(key)
    if (remembered?.key === key && remembered.createdAt > oldest) return remembered
    memory.releaseKey(key)
    const records = this.options.storage()?.records
    const stored = await guard(records?.findByKey(key))
    if (!stored || stored.createdAt > oldest) return stored
    await guard(records?.releaseKey(key))
  }
}

function keyConflict(isSameBody: boolean): RelayError {
  return isSameBody ? new RelayError('in-progress', undefined, { headers: { 'retry-after': '1' } }) : new RelayError('key-reused')
}

function createRecord(id: string, request: WebhookRequest, idempotency: Idempotency | null): DeliveryRecord {
  const now = Date.now()
  return {
    id, state: 'sending', mode: request.mode, deferred: false, target: request.target, bot: '', createdAt: now, updatedAt: now, expiresAt: null,
    attempts: 0, results: itemsOf(request).map(() => undefined), sending: null,
    key: idempotency?.key ?? null, fingerprint: idempotency?.fingerprint ?? null,
  }
}

/** Waits until a delivery is finished, but no longer than this, in milliseconds, nor than the caller. */
function waitFor(outbox: Outbox, id: string, patience: number, gone: AbortSignal): Promise<DeliveryRecord | undefined> {
  return new Promise(resolve => {
    const end = (record?: DeliveryRecord): void => {
      clearTimeout(timer)
      unwatch()
      gone.removeEventListener('abort', onGone)
      resolve(record)
    }
    const onGone = (): void => end()
    const timer = setTimeout(end, patience)
    const unwatch = outbox.watch(id, end)
    gone.addEventListener('abort', onGone)
  })
}
