import type { Bot, Logger } from 'koishi'
import { judge } from './deliver'
import type { Turn } from './queue'
import { SendError } from '../platform/port'
import type { ItemResult, Transmitter } from './transmitter'
import { RelayError } from '../errors'
import type { ParsedItem } from '../message/model'
import { itemsOf, parseRequest } from '../message/parse'
import { writeTarget } from '../message/target'
import type { DatabaseRecords, Patch, StoredRequest } from './database-store'
import { persist } from './patience'
import { doubtOf, settlement, withLate, type DeliveryRecord, type State } from './delivery'

export interface DispatcherOptions {
  records: DatabaseRecords
  transmitter: Transmitter
  logger: Logger
  stop: AbortSignal
}

/** Thrown to end a transmission that must not begin. */
class NotOurs extends Error {
  override readonly name = 'NotOurs'
}

/** Sends stored requests whose turn has come, and writes down each step before the next one is made. */
export class Dispatcher {
  /** @param onFinished told of each delivery that has ended */
  constructor(private readonly options: DispatcherOptions, private readonly onFinished: (record: DeliveryRecord) => void) {}

  /**
   * Delivers a stored request, as far as it has not been.
   *
   * @param isOurs whether this relay may still send it
   * @returns `again` when it has to be tried again before the next one may follow; `gone` when it was withdrawn, has expired, or
   *   the lane is another relay's by now: whoever looks for the next one will see
   * @throws the error of the database, while nothing has left
   */
  async deliver(turn: Turn, bot: Bot, stored: StoredRequest, isOurs: () => boolean): Promise<'done' | 'again' | 'gone'> {
    try {
      return await this.transmit(turn, bot, stored, isOurs) ? 'done' : 'again'
    } catch (error) {
      if (error instanceof NotOurs) return 'gone'
      throw error
    }
  }

  /**
   * Ends a delivery that was not delivered in its time.
   *
   * @returns whether it did; not when it has begun to leave meanwhile
   */
  expire(record: DeliveryRecord): Promise<boolean> {
    return this.end(record, new RelayError('expired'))
  }

  private end(record: DeliveryRecord, error: RelayError): Promise<boolean> {
    const doubted = record.sending?.indices ?? []
    return this.finish(record, record.results.map((result, index) => result ?? {
      success: false, error: doubted.includes(index) ? new RelayError('unanswered') : error,
    }), [record.state])
  }

  private async transmit(turn: Turn, bot: Bot, { record, body }: StoredRequest, isOurs: () => boolean): Promise<boolean> {
    const { transmitter, records, stop } = this.options
    const { target } = record
    const wasLeaving = record.state === 'sending'
    const doubt = record.sending
    const items = readItems(body)
    if (items instanceof RelayError) {
      await this.end(record, items)
      return true
    }
    // Equal messages that were sent by a process that is no more, or by another relay, are not to be taken for this one.
    if (doubt) transmitter.account(bot, target, await records.messageIds(record, doubt.since))
    // What was leaving when the process ended is looked up as it is sent again; here, what is sent again on request or not at all.
    if (doubt && (!wasLeaving || isOverdue(record))) {
      const found = await transmitter.lookUp({ bot, target, items, doubtful: doubt })
      record.results = record.results.map((result, index) => result ?? found.get(index))
    }
    if (isOverdue(record)) {
      await this.expire(record)
      return true
    }
    const known = new Map(record.results.flatMap((result, index) => result ? [[index, result]] : []))
    const late = new Map<number, ItemResult>()
    /** What was written down in the end. */
    let final: (ItemResult | undefined)[] | undefined = undefined
    const results = await transmitter.transmit({
      turn, bot, target, items, known,
      ...doubt && wasLeaving && { doubtful: doubt },
      journal: {
        sending: async sending => {
          // Written down as leaving, it would have to be looked up.
          if (stop.aborted) throw new RelayError('stopping')
          if (!isOurs()) throw new NotOurs()
          // Items that went unanswered before are looked for from when they left.
          const earlier = doubtOf(record, record.results)
          record.sending = earlier ? { ...earlier, indices: sending.indices } : sending
          const isThere = await this.persist(record, [record.state], { state: 'sending', sending: record.sending, results: record.results }, turn)
          if (!isThere) throw new NotOurs()
          if (!isOurs()) throw new NotOurs()
        },
        settled: (indices, result) => {
          for (const index of indices) record.results[index] = result
        },
        attempt: () => {
          // A message that is looked up first, or tried again, may be another relay's by now.
          if (!isOurs()) throw new SendError('unsent', undefined, { isFinal: true })
          record.attempts++
        },
        late: async (indices, messageIds) => {
          if (indices.every(index => record.results[index]?.success)) return true
          // The next process looks it up.
          if (stop.aborted) return false
          for (const index of indices) late.set(index, { success: true, messageIds })
          // It may wait to be sent again meanwhile; then it is looked up before.
          return final ? this.finish(record, withLate(final, late), ['unanswered']) : true
        },
      },
    })
    turn.judge(judge(results.filter((_, index) => !known.has(index))))
    // It is in the database as leaving, and is looked up after the restart.
    if (stop.aborted && doubtOf(record, results)) return false
    final = withLate(results, late)
    if (final.some(isUnsent)) {
      const left = final.map(result => isUnsent(result) ? undefined : result)
      await this.persist(record, ['sending', 'queued'], { state: 'queued', sending: wasLeaving ? null : doubt, results: left }, turn)
      return false
    }
    await this.finish(record, final, ['sending', 'queued'], turn)
    return true
  }

  /** @returns whether the delivery was in one of these states */
  private async finish(record: DeliveryRecord, results: (ItemResult | undefined)[], from: State[], turn?: Turn): Promise<boolean> {
    const { logger } = this.options
    const wasThere = await this.persist(record, from, settlement(record, results), turn)
    if (!wasThere) return false
    const { id, state, target, attempts } = record
    logger.info('%s', `${id} deferred ${writeTarget(target)} ${state} after ${attempts} attempts`)
    this.onFinished(record)
    return true
  }

  /** Writes down a change. Nothing may leave that is not written down, and nobody overtakes it. */
  private async persist(record: DeliveryRecord, from: State[], patch: Patch, turn?: Turn): Promise<boolean> {
    const { records, logger, stop } = this.options
    const onFailure = (): void => turn?.turnAway(new RelayError('store-down'))
    const change = { ...patch, attempts: record.attempts }
    const wasThere = await persist(() => records.change(record.id, from, change), { logger, stop, onFailure })
    if (wasThere) Object.assign(record, patch, { updatedAt: Date.now() })
    return wasThere
  }
}

/** What was valid when it was accepted may not be so for a newer release. */
function readItems(body: unknown): readonly ParsedItem[] | RelayError {
  try {
    return itemsOf(parseRequest(body))
  } catch (error) {
    return RelayError.from(error)
  }
}

function isOverdue({ expiresAt }: DeliveryRecord): boolean {
  return expiresAt !== null && expiresAt < Date.now()
}

function isUnsent(result: ItemResult | undefined): boolean {
  return result !== undefined && !result.success && (result.error.code === 'unsent' || result.error.code === 'stopping')
}
