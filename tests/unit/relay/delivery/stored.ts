import { v7 as uuid } from 'uuid'
import { RelayError } from '../../../../src/errors'
import type { ParsedItem } from '../../../../src/message/model'
import { DeliveriesTable } from '../../../../src/relay/delivery/deliveries-table'
import type { Delivery } from '../../../../src/relay/delivery/delivery'
import type { RecordContent } from '../../../../src/relay/delivery/summary'
import type { Store } from '../../../../src/relay/store/store'
import { SimulatedClock } from '../../../support/simulated-clock'
import { TestStorage } from '../../../support/store'
import type { Text } from '../../../../src/texts/text'

export const text: ParsedItem = { type: 'text', text: 'build #4711 passed' }
let seq = 0

/** A delivery of one text that was sent, but for what is said otherwise. */
export function deliveryOf(changes: Partial<Delivery> = {}): Delivery {
  const { createdAt } = changes
  return {
    // One after another within a millisecond, as long as no time is given.
    id: createdAt === undefined ? uuid() : uuid({ msecs: createdAt }), seq: ++seq, state: 'sent', mode: 'single', deferred: false,
    target: { kind: 'group', id: '1' }, caller: null, door: 'webhook', bot: 'onebot:10000', createdAt: createdAt ?? Date.now(),
    updatedAt: createdAt ?? Date.now(), expiresAt: null, attempts: 1, results: [{ success: true, messageIds: ['1'] }], open: [], key: null,
    fingerprint: null, flow: {}, summary: { items: [{ type: 'text', msg: 'build #4711 passed' }], calls: [], waited: 0, platformTime: 7 }, ...changes,
  }
}

/** A deferred delivery that waits. */
export function queued(changes: Partial<Delivery> = {}): Delivery {
  return deliveryOf({ state: 'queued', deferred: true, results: [undefined], ...changes })
}

/** Without the stacks of its errors, which nothing compares. */
export function plain(delivery: Delivery | undefined): unknown {
  return JSON.parse(JSON.stringify(delivery, (_, value: unknown) => value instanceof RelayError ? [value.code, value.message] : value))
}

export function idsOf(deliveries: readonly { id: string }[]): string[] {
  return deliveries.map(({ id }) => id)
}

export interface Stored {
  store: Store
  table: DeliveriesTable
  /** The warnings of the log. */
  lines: string[]
  save: (deliveries: readonly Delivery[], items?: readonly ParsedItem[]) => void
}

/** The table on a store; without one, on a new store in memory. */
export async function stored(recordContent: RecordContent = 'preview', present?: Store): Promise<Stored> {
  const store = present ?? await new TestStorage(new SimulatedClock(Date.now())).open(new AbortController().signal)
  const lines: string[] = []
  const table = new DeliveriesTable(store, { recordContent, logger: { warn: (line: Text) => void lines.push(String(line)) } })
  return {
    store, table, lines,
    save: (deliveries, items = []) => store.commit(writer => deliveries.forEach(each => table.insert(writer, each, items))),
  }
}
