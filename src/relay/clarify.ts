import type { Bot } from 'koishi'
import { isOnline, laneOf } from '../platform/bots'
import type { Lanes, Turn } from './queue'
import type { Transmitter } from './transmitter'
import type { ParsedItem } from '../message/model'
import type { DatabaseRecords } from './database-store'
import { doubtOf, settlement, type DeliveryRecord } from './delivery'

export interface ClarifyOptions {
  bots: Iterable<Bot>
  lanes: Lanes
  transmitter: Transmitter
  records: DatabaseRecords | undefined
}

/**
 * Asks the platform what became of a delivery that went unanswered, and sends nothing. Where that cannot be asked now, or
 * brings nothing, the record stays as it is: a message that is not in the history may still come.
 *
 * @param items of its request
 * @param signal the caller has gone away
 */
export async function clarify(
  record: DeliveryRecord, items: readonly ParsedItem[], signal: () => AbortSignal, { bots, lanes, transmitter, records }: ClarifyOptions,
): Promise<void> {
  const bot = [...bots].find(({ sid }) => sid === record.bot)
  const doubtful = doubtOf(record, record.results)
  if (!bot || !isOnline(bot) || !doubtful) return
  // While nothing else leaves for the target, whose equal message could be taken for this one.
  const turn = await enter(lanes, laneOf(record.bot, record.target), signal)
  if (!turn) return
  try {
    const others = records ? await records.messageIds(record, doubtful.since).catch(() => undefined) : []
    if (!others) return
    transmitter.account(bot, record.target, others)
    const found = await transmitter.lookUp({ bot, target: record.target, items, doubtful })
    if (found.size === 0) return
    Object.assign(record, settlement(record, record.results.map((result, index) => found.get(index) ?? result)))
  } finally {
    turn.end()
  }
  const { id, state, results, sending } = record
  // It can be asked again as well.
  await records?.change(id, ['unanswered', 'sending'], { state, results, sending }).catch(() => undefined)
}

async function enter(lanes: Lanes, lane: string, signal: () => AbortSignal): Promise<Turn | undefined> {
  try {
    return await lanes.enter(lane, { signal })
  } catch {
    // The lane is full or paused, the caller has gone away, or the relay stops.
  }
}
