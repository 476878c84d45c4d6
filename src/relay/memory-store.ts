import type { ParsedItem } from '../message/model'
import { isObject } from '../message/parse'
import { messageIdsOf, type Change, type Delivery, type State } from './delivery'
import { matches, queueOf, type Backlog, type ListFilter, type QueuedDelivery, type Store, type WaitingQueue } from './store'
import { fromStored, toStored } from './stored'

/** How many deliveries that have ended are remembered. */
const defaultCapacity = 10_000
/** How many Idempotency-Keys are remembered. */
const keyCapacity = 100_000

/** A delivery that has not ended, with what is needed to send it. */
type Active = QueuedDelivery

/**
 * Keeps deliveries in memory: all that have not ended, and the last of those that have. The latter are kept as one text each, because
 * thousands of objects that live for some seconds each make the JavaScript heap several times larger.
 */
export class MemoryStore implements Store {
  readonly isDurable = false
  private readonly active = new Map<string, Active>()
  /** A ring of deliveries that have ended, in the order in which they did. */
  private readonly ended: string[] = []
  private endedCount = 0
  private readonly keys = new Map<string, Delivery>()

  constructor(private readonly capacity = defaultCapacity) {}

  insert(delivery: Delivery, position: string, items: readonly ParsedItem[]): void {
    const { id, key } = delivery
    if (key !== null) {
      if (this.keys.has(key)) throw new Error('this Idempotency-Key is taken')
      this.keys.set(key, delivery)
      if (this.keys.size > keyCapacity) dropFirst(this.keys)
    }
    if (isActive(delivery.state)) this.active.set(id, { delivery, position, items: position === '' ? [] : items })
    else this.end(delivery)
  }

  update(delivery: Delivery, from: readonly State[], change: Change): boolean {
    const { id, key } = delivery
    const active = this.active.get(id)
    const place = active ? -1 : this.placeOf(id)
    const known = active?.delivery ?? this.readAt(place) ?? (key === null ? undefined : this.keys.get(key))
    if (!known || !from.includes(known.state)) return false
    Object.assign(delivery, change, { updatedAt: Date.now() })
    if (known !== delivery) Object.assign(known, delivery)
    if (key !== null && delivery.key === null) this.keys.delete(key)
    if (isActive(delivery.state)) {
      if (place >= 0) this.ended[place] = ''
      if (!active) this.active.set(id, { delivery, position: '', items: [] })
    } else if (active) {
      this.active.delete(id)
      this.end(delivery)
    } else if (place >= 0) {
      this.ended[place] = write(delivery)
    }
    return true
  }

  requeue(delivery: Delivery, from: readonly State[], change: Change, position: string): boolean {
    const isThere = this.update(delivery, from, change)
    const active = this.active.get(delivery.id)
    if (active) active.position = position
    return isThere
  }

  withdraw(id: string): boolean {
    const active = this.active.get(id)
    if (active?.delivery.state !== 'queued' || active.position === '') return false
    this.discard(id)
    return true
  }

  discard(id: string): void {
    const key = this.get(id)?.key
    if (key) this.keys.delete(key)
    if (this.active.delete(id)) return
    const place = this.placeOf(id)
    if (place >= 0) this.ended[place] = ''
  }

  get(id: string): Delivery | undefined {
    return this.active.get(id)?.delivery ?? this.readAt(this.placeOf(id))
  }

  findByKey(key: string): Delivery | undefined {
    return this.keys.get(key)
  }

  releaseKey(key: string): void {
    const delivery = this.keys.get(key)
    if (delivery) delivery.key = null
    this.keys.delete(key)
  }

  list(filter: ListFilter): Delivery[] {
    const found = [...this.active.values()].map(({ delivery }) => delivery).filter(delivery => matches(delivery, filter))
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

  next(queue: string, upTo: string): QueuedDelivery | undefined {
    return this.first('queued', queue, upTo)
  }

  interrupted(queue: string): QueuedDelivery | undefined {
    return this.first('sending', queue)
  }

  countWaiting(queue: string): number {
    return this.positioned().filter(({ delivery }) => delivery.state === 'queued' && queueOf(delivery.bot, delivery.target) === queue).length
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

  messageIds({ bot, target }: Delivery): string[] {
    return this.list({ target, limit: 50 }).filter(delivery => delivery.bot === bot).flatMap(messageIdsOf)
  }

  private end(delivery: Delivery): void {
    this.ended[this.endedCount++ % this.capacity] = write(delivery)
  }

  private placeOf(id: string): number {
    return this.ended.findIndex(text => text.startsWith(head + id))
  }

  private readAt(place: number): Delivery | undefined {
    const text = this.ended[place]
    return text ? read(text) : undefined
  }

  private positioned(): Active[] {
    return [...this.active.values()].filter(({ position }) => position !== '')
  }

  private first(state: State, queue: string, upTo?: string): QueuedDelivery | undefined {
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
const head = '{"id":"'

/** A delivery as a text that begins with its ID. */
function write(delivery: Delivery): string {
  return JSON.stringify(toStored(delivery))
}

function read(text: string): Delivery {
  const stored: unknown = JSON.parse(text)
  if (!isObject(stored)) throw new Error('the text was not written by this store')
  return fromStored(stored)
}

function dropFirst(map: Map<string, unknown>): void {
  // A Map keeps the order in which its entries came.
  for (const first of map.keys()) {
    map.delete(first)
    return
  }
}
