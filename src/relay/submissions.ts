import type { Bot } from 'koishi'
import { chooseBot, chooseFutureBot, checkTarget } from '../platform/bots'
import type { Delivery } from './deliver'
import type { Lanes } from './queue'
import type { Transmitter } from './transmitter'
import { RelayError } from '../errors'
import type { WebhookRequest } from '../message/model'
import { itemsOf } from '../message/parse'
import { clarify } from './clarify'
import { guard, keyConflict, Ledger } from './ledger'
import type { MemoryRecords } from './memory-store'
import type { DeliveryRecord } from './delivery'
import { digest, unanswered } from './row'
import type { Storage } from './storage'
import type { Trace } from './sent-log'
import { keepUploads, type KeepUpload } from './uploads'
import { Deadline, Result } from './waits'

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
  /** Keeps what is in no database for the next process. */
  trace: Trace
  storage: () => Storage | undefined
  /** Whether there is a database, or one that is on its way. */
  isDatabaseLoaded: () => boolean
  /** Resolves when it is there, or has not come in its time. */
  arrival: Promise<void>
  bots: Iterable<Bot>
  lanes: Lanes
  keepUpload: KeepUpload
  /** Looks up what went unanswered when its request comes again. */
  transmitter: Transmitter
}

interface Idempotency {
  /** Digest of the key: databases differ in which texts they take for equal. */
  key: string
  fingerprint: string
}

/** How long an Idempotency-Key lives, in milliseconds. */
const keyLifetime = 24 * 60 * 60 * 1000
/** After which time a deferred delivery is dropped unless the request says otherwise, in milliseconds. */
const defaultExpiry = 24 * 60 * 60 * 1000
/** From which age a send that somebody waits for, but not in this process, counts as interrupted, in milliseconds. */
const longestSend = 10 * 60 * 1000

/** Takes requests to send: once per Idempotency-Key, at once or later, and keeps an account of each. */
export class Submissions {
  /** The keys of requests under way, with the digests of their bodies. */
  private readonly underWay = new Map<string, string>()

  private hasArrived = false

  constructor(private readonly options: SubmissionsOptions) {
    void options.arrival.then(() => {
      this.hasArrived = true
    })
  }

  /**
   * Sends what a request asks for, unless its key says that this was done before. `expires_in` bounds the wait for a turn as
   * well, when the caller waits for the result.
   *
   * @throws RelayError what stops the request as such
   */
  async submit(submission: Submission): Promise<Submitted> {
    await this.awaitStorage(submission)
    if (submission.key === undefined) return { record: await this.perform(submission, null), replayed: false }
    const key = digest(submission.key)
    const fingerprint = digest(JSON.stringify(submission.body))
    const other = this.underWay.get(key)
    if (other !== undefined) throw keyConflict(other === fingerprint)
    this.underWay.set(key, fingerprint)
    try {
      const earlier = await this.findByKey(key)
      if (!earlier) return { record: await this.perform(submission, { key, fingerprint }), replayed: false }
      if (earlier.fingerprint !== fingerprint) throw keyConflict(false)
      const isUnderWay = earlier.state === 'sending' && !earlier.deferred
      if (isUnderWay && earlier.updatedAt > Date.now() - longestSend) throw keyConflict(true)
      if (isUnderWay || earlier.state === 'unanswered') await this.clarify(earlier, submission)
      return { record: earlier, replayed: true }
    } finally {
      this.underWay.delete(key)
    }
  }

  /** Without the database that holds it, a key would be taken for a new one, and what waits would be overtaken. */
  private async awaitStorage({ key, deferred }: Submission): Promise<void> {
    const { storage, isDatabaseLoaded, arrival } = this.options
    const isNeeded = key !== undefined || deferred !== undefined
    if (storage() || (this.hasArrived && !isNeeded) || !isDatabaseLoaded()) return
    await arrival
    if (!storage() && isNeeded) throw new RelayError('store-down')
  }

  private perform(submission: Submission, idempotency: Idempotency | null): Promise<DeliveryRecord> {
    return submission.deferred ? this.defer(submission, submission.deferred.wait, idempotency) : this.send(submission, idempotency)
  }

  /** Sends while the caller waits. */
  private async send({ id, request, body, signal }: Submission, idempotency: Idempotency | null): Promise<DeliveryRecord> {
    const { delivery, transmitter, memory, trace, bots } = this.options
    const { target } = request
    const storage = this.options.storage()
    const record = createRecord(id, request, idempotency)
    const ledger = new Ledger(record, memory, trace, storage)
    // What an earlier process left comes first.
    if (storage && !storage.outbox.isOpen) await storage.outbox.opened
    const deadline = new Deadline(signal, request.expiresIn)
    try {
      const bot = chooseBot(bots, request.bot)
      checkTarget(bot, target)
      record.bot = bot.sid
      if (idempotency) record.sending = transmitter.doubt(bot, target, [])
      await ledger.open(body)
      await ledger.close(await delivery.deliver({
        target, bot, items: itemsOf(request), signal: () => deadline.signal(), journal: ledger,
      }))
      return record
    } catch (thrown) {
      const error = RelayError.from(thrown)
      await ledger.fail(error)
      throw error
    } finally {
      deadline.end()
    }
  }

  /** Stores what is to be sent later, and waits a while for the result if the caller likes to. */
  private async defer({ id, request, body, signal }: Submission, wait: number, idempotency: Idempotency | null): Promise<DeliveryRecord> {
    const { bots, keepUpload } = this.options
    const storage = this.options.storage()
    if (!storage) throw new RelayError('no-database')
    const { outbox } = storage
    const bot = chooseFutureBot(bots, request.bot)
    checkTarget(bot, request.target)
    const expiresAt = Date.now() + (request.expiresIn ?? defaultExpiry)
    const record: DeliveryRecord = {
      ...createRecord(id, request, idempotency), state: 'queued', deferred: true, bot: bot.sid, expiresAt,
    }
    await keepUploads(request, expiresAt, keepUpload)
    const result = wait > 0 ? new Result(outbox, id) : undefined
    try {
      await outbox.add(record, body)
      return await result?.within(wait, signal()) ?? record
    } finally {
      result?.end()
    }
  }

  /** Finds out what became of an earlier request that went unanswered. */
  private async clarify(record: DeliveryRecord, { request, signal }: Submission): Promise<void> {
    const { bots, lanes, transmitter, storage, memory } = this.options
    record.state = 'unanswered'
    record.results = record.results.map(result => result ?? unanswered())
    await clarify(record, itemsOf(request), signal, { bots, lanes, transmitter, records: storage()?.records })
    memory.update(record)
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

function createRecord(id: string, request: WebhookRequest, idempotency: Idempotency | null): DeliveryRecord {
  const now = Date.now()
  return {
    id, state: 'sending', mode: request.mode, deferred: false, target: request.target, bot: '', createdAt: now, updatedAt: now, expiresAt: null,
    attempts: 0, results: itemsOf(request).map(() => undefined), sending: null,
    key: idempotency?.key ?? null, fingerprint: idempotency?.fingerprint ?? null,
  }
}
