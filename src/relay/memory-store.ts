import { writeTarget } from '../message/target'
import { matches, type ListFilter } from './filter'
import { mayHold, readLine, writeLine } from './line'
import type { DeliveryRecord } from './delivery'

/** How many deliveries are remembered at least, and how many are packed together. */
const capacity = 10_000
const pageSize = 100
/** How many Idempotency-Keys are remembered where there is no database. */
const keyCapacity = 100_000

/** Deliveries that have ended, a line each, as bytes. */
interface Page {
  readonly bytes: Buffer
  readonly size: number
}

/**
 * Remembers the last deliveries, for those that cost no write to a database. Those that have ended are packed, a hundred or so at
 * a time: thousands of objects that live for some seconds each make the JavaScript heap several times larger.
 */
export class MemoryRecords {
  /** The latest, and what is still under way; by acceptance. */
  private latest: DeliveryRecord[] = []
  /** How many deliveries have come since the last packing. */
  private fresh = 0
  private pages: Page[] = []
  private packed = 0
  private readonly keys = new Map<string, DeliveryRecord>()

  add(record: DeliveryRecord): void {
    this.latest.push(record)
    if (++this.fresh === pageSize) this.pack()
  }

  /** Takes down what has changed of a delivery after it had ended. */
  update(record: DeliveryRecord): void {
    if (!this.latest.includes(record)) this.rewrite(record.id, [writeLine(record)])
  }

  /** Remembers a delivery under its key, beyond the last ones. */
  addKey(record: DeliveryRecord): void {
    if (record.key === null) return
    this.keys.delete(record.key)
    this.keys.set(record.key, record)
    if (this.keys.size > keyCapacity) dropFirst(this.keys)
  }

  /** Lets go of a delivery that is kept elsewhere. */
  forget(record: DeliveryRecord): void {
    const { id, key } = record
    const index = this.latest.indexOf(record)
    if (index >= 0) this.latest.splice(index, 1)
    else this.rewrite(id, [])
    if (key !== null && this.keys.get(key)?.id === id) this.keys.delete(key)
  }

  get(id: string): DeliveryRecord | undefined {
    const latest = this.latest.find(record => record.id === id)
    if (latest) return latest
    const page = this.pages.find(({ bytes }) => bytes.includes(id))
    const line = page && linesOf(page).find(line => line.startsWith(id))
    return line === undefined ? undefined : readLine(line)
  }

  findByKey(key: string): DeliveryRecord | undefined {
    return this.keys.get(key)
  }

  releaseKey(key: string): void {
    this.keys.delete(key)
  }

  /** The newest first. */
  list(filter: ListFilter): DeliveryRecord[] {
    const { state, target, limit } = filter
    const found = this.latest.filter(record => matches(record, filter))
    const values = [state, target && writeTarget(target)].filter(value => value !== undefined)
    const lines = this.pages.flatMap(linesOf).filter(line => values.every(value => mayHold(line, value))).sort()
    for (let count = 0; count < limit;) {
      const line = lines.pop()
      if (line === undefined) break
      const record = readLine(line)
      if (!matches(record, filter)) continue
      found.push(record)
      count++
    }
    return found.sort((a, b) => a.id < b.id ? 1 : -1).slice(0, limit)
  }

  private pack(): void {
    this.fresh = 0
    const ended = this.latest.filter(({ state }) => state !== 'sending')
    if (ended.length === 0) return
    this.latest = this.latest.filter(({ state }) => state === 'sending')
    this.pages.push(toPage(ended.map(writeLine)))
    this.packed += ended.length
    while (this.packed - (this.pages[0]?.size ?? 0) >= capacity) this.packed -= this.pages.shift()?.size ?? 0
  }

  /** Puts other lines into the place of a packed delivery. */
  private rewrite(id: string, lines: readonly string[]): void {
    const index = this.pages.findIndex(({ bytes }) => bytes.includes(id))
    const page = this.pages[index]
    if (!page) return
    this.pages[index] = toPage(linesOf(page).flatMap(line => line.startsWith(id) ? lines : line))
    this.packed += this.pages[index].size - page.size
  }
}

function toPage(lines: readonly string[]): Page {
  return { bytes: Buffer.from(lines.join('\n')), size: lines.length }
}

function linesOf({ bytes, size }: Page): string[] {
  return size > 0 ? bytes.toString().split('\n') : []
}

function dropFirst(map: Map<string, unknown>): void {
  // A Map keeps the order in which its entries came.
  for (const first of map.keys()) {
    map.delete(first)
    return
  }
}
