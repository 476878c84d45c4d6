import { Registry } from '../lib/transient'
import type { ParsedItem } from '../message/model'
import type { Clock } from './clock'
import type { Change, Delivery, State } from './delivery'
import { matches, noPosition, queueOf, type Backlog, type ListFilter, type QueuedDelivery, type Store, type Waiting, type WaitingQueue } from './store'
import { fromStored, storedFields, toStored } from './stored'

/** How much is remembered. Lengths are in characters, each of which takes one byte of memory or two. */
interface Capacity {
  /** How many deliveries that have ended, and how long they may be together. */
  ended: number
  endedLength: number
  /** The same for those that hold an Idempotency-Key. */
  keys: number
  keysLength: number
}

const defaultCapacity: Capacity = { ended: 10_000, endedLength: 8 * 1024 * 1024, keys: 100_000, keysLength: 32 * 1024 * 1024 }

/** A delivery that has not ended, with what is needed to send it. */
type Active = QueuedDelivery

/**
 * Keeps deliveries in memory: all that have not ended, and the last of those that have, bounded in number and length. The latter are
 * kept as one text each, because thousands of objects that live for some seconds each make the JavaScript heap several times larger.
 */
export class MemoryStore implements Store {
  readonly isDurable = false
  private readonly active = new Registry<Active>()
  /** A ring of deliveries that have ended, in the order in which they did; empty where one was dropped. */
  private readonly ended: string[] = []
  private endedCount = 0
  private endedLength = 0
  /** How many of those that have ended were dropped, the oldest first. */
  private droppedCount = 0
  /** Those that hold an Idempotency-Key: the delivery itself until it has ended, and then the same text as above. */
  private readonly keys = new Map<string, Delivery | string>()
  private keysLength = 0
  private readonly capacity: Capacity

  constructor(private readonly clock: Clock, capacity: Partial<Capacity> = {}) {
    this.capacity = { ...defaultCapacity, ...capacity }
  }

  insert(delivery: Delivery, position: number, items: readonly ParsedItem[]): void {
    const { id, key } = delivery
    if (key !== null) {
      if (this.keys.has(key)) throw new Error('this Idempotency-Key is taken')
      this.setKey(key, delivery)
    }
    if (isActive(delivery.state)) this.active.set(id, { delivery, position, items: position === noPosition ? [] : items, isOurs: true })
    else this.end(delivery)
  }

  update(delivery: Delivery, from: readonly State[], change: Change): boolean {
    const { id, key } = delivery
    const active = this.active.get(id)
    const place = active ? -1 : this.placeOf(id)
    const known = active?.delivery ?? this.readAt(place) ?? (key === null ? undefined : this.findByKey(key))
    if (!known || !from.includes(known.state)) return false
    Object.assign(delivery, change, { updatedAt: this.clock.now() })
    if (known !== delivery) Object.assign(known, delivery)
    if (key !== null && delivery.key === null) this.deleteKey(key)
    if (isActive(delivery.state)) {
      this.put(place, '')
      if (!active) this.active.set(id, { delivery, position: noPosition, items: [], isOurs: true })
      if (delivery.key !== null) this.setKey(delivery.key, delivery)
    } else if (active) {
      this.active.delete(id)
      this.end(delivery)
    } else {
      this.put(place, this.writeEnded(delivery))
    }
    return true
  }

  requeue(delivery: Delivery, from: readonly State[], change: Change, position: number): boolean {
    const isThere = this.update(delivery, from, change)
    const active = this.active.get(delivery.id)
    if (active) active.position = position
    return isThere
  }

  withdraw(id: string): boolean {
    const active = this.active.get(id)
    if (active?.delivery.state !== 'queued' || active.position === noPosition) return false
    this.discard(id)
    return true
  }

  discard(id: string): void {
    const key = this.get(id)?.key
    if (key) this.deleteKey(key)
    if (!this.active.delete(id)) this.put(this.placeOf(id), '')
  }

  get(id: string): Delivery | undefined {
    return this.active.get(id)?.delivery ?? this.readAt(this.placeOf(id))
  }

  findByKey(key: string): Delivery | undefined {
    const known = this.keys.get(key)
    return typeof known === 'string' ? read(known) : known
  }

  releaseKey(key: string): void {
    const delivery = this.findByKey(key)
    if (!delivery) return
    delivery.key = null
    this.deleteKey(key)
    if (!this.active.get(delivery.id)) this.put(this.placeOf(delivery.id), write(delivery))
  }

  list(filter: ListFilter): Delivery[] {
    const found = this.active.values().map(({ delivery }) => delivery).filter(delivery => matches(delivery, filter))
    // IDs sort as deliveries were accepted, and a text begins with its ID.
    const texts = this.ended.filter(text => text !== '' && (filter.before === undefined || text < head + filter.before)).sort()
    for (let left = filter.limit; left > 0;) {
      const text = texts.pop()
      if (text === undefined) break
      const delivery = read(text)
      if (!matches(delivery, filter)) continue
      found.push(delivery)
      left--
    }
    return found.sort((a, b) => a.id < b.id ? 1 : -1).slice(0, filter.limit)
  }

  getQueued(id: string): QueuedDelivery | undefined {
    const active = this.active.get(id)
    return active?.position ? active : undefined
  }

  queues(): WaitingQueue[] {
    const queues = new Map(this.positioned().map(({ delivery: { bot, target } }) => [queueOf(bot, target), bot]))
    return [...queues].map(([queue, bot]) => ({ queue, bot }))
  }

  next(queue: string, upTo: number): QueuedDelivery | undefined {
    return this.first('queued', queue, upTo)
  }

  interrupted(queue: string): QueuedDelivery | undefined {
    return this.first('sending', queue)
  }

  waiting(queue: string): Waiting {
    const all = this.positioned().filter(({ delivery }) => queueOf(delivery.bot, delivery.target) === queue)
    return {
      count: all.filter(({ delivery }) => delivery.state === 'queued').length,
      last: Math.max(...all.map(({ position }) => position), 0),
    }
  }

  backlog(): Backlog {
    const waiting = this.positioned()
    const oldest = waiting.find(({ delivery }) => delivery.state === 'queued')?.delivery.createdAt
    return { size: waiting.length, ...oldest !== undefined && { oldest } }
  }

  overdue(state: State, then: number): Delivery[] {
    return this.positioned().map(({ delivery }) => delivery)
      .filter(({ state: present, expiresAt }) => present === state && expiresAt !== null && expiresAt < then)
  }

  private end(delivery: Delivery): void {
    this.put(this.endedCount++ % this.capacity.ended, this.writeEnded(delivery))
    this.droppedCount = Math.max(this.droppedCount, this.endedCount - this.capacity.ended)
    while (this.endedLength > this.capacity.endedLength) this.put(this.droppedCount++ % this.capacity.ended, '')
  }

  /** The text of a delivery that has ended, which is kept for its key as well. */
  private writeEnded(delivery: Delivery): string {
    const text = write(delivery)
    if (delivery.key !== null) this.setKey(delivery.key, text)
    return text
  }

  private put(place: number, text: string): void {
    if (place < 0) return
    this.endedLength += text.length - (this.ended[place]?.length ?? 0)
    this.ended[place] = text
  }

  private setKey(key: string, value: Delivery | string): void {
    this.keysLength += lengthOf(value) - lengthOf(this.keys.get(key))
    this.keys.set(key, value)
    while (this.keys.size > this.capacity.keys || this.keysLength > this.capacity.keysLength) {
      // A Map keeps the order in which its entries came.
      const [first] = this.keys.keys()
      if (first === undefined) return
      this.deleteKey(first)
    }
  }

  private deleteKey(key: string): void {
    this.keysLength -= lengthOf(this.keys.get(key))
    this.keys.delete(key)
  }

  private placeOf(id: string): number {
    return this.ended.findIndex(text => text.startsWith(head + id))
  }

  private readAt(place: number): Delivery | undefined {
    const text = this.ended[place]
    return text ? read(text) : undefined
  }

  private positioned(): Active[] {
    return this.active.values().filter(({ position }) => position !== noPosition)
  }

  private first(state: State, queue: string, upTo?: number): QueuedDelivery | undefined {
    return this.positioned()
      .filter(({ delivery, position }) => delivery.state === state && (upTo === undefined || position <= upTo)
        && queueOf(delivery.bot, delivery.target) === queue)
      .reduce<Active | undefined>((best, each) => best && best.position <= each.position ? best : each, undefined)
  }
}

function isActive(state: State): boolean {
  return state === 'queued' || state === 'sending'
}

/** What each text begins with, so that texts sort as their deliveries do. */
const head = '["'

/** A delivery as a text that begins with its ID. */
function write(delivery: Delivery): string {
  const stored = toStored(delivery)
  const text = JSON.stringify(storedFields.map(field => stored[field]))
  // What comes out of there is held together by several objects, which take more memory than the text itself.
  return Buffer.from(text).toString()
}

function read(text: string): Delivery {
  const stored: unknown = JSON.parse(text)
  if (!Array.isArray(stored)) throw new Error('the text was not written by this store')
  return fromStored(Object.fromEntries(storedFields.map((field, index): [string, unknown] => [field, stored[index]])))
}

/** What has not ended counts nothing: it is bounded by the queues. */
function lengthOf(value: Delivery | string | undefined): number {
  return typeof value === 'string' ? value.length : 0
}
