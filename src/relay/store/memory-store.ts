import { Registry } from '../../lib/transient'
import type { ParsedItem } from '../../message/model'
import { readItems, writeItems } from '../../message/parse'
import { isUnfinished, type Change, type Delivery, type State } from '../delivery/delivery'
import type { Clock } from './clock'
import { textPattern } from './listing'
import { lowestId, matches, noPosition, queueOf, type Backlog, type ListFilter, type QueuedDelivery, type Store, type Waiting, type WaitingQueue } from './store'
import { fromText, textHead, toText, writeCaller } from './stored'

/** How much is remembered. Lengths are in characters, each of which takes one byte of memory or two. */
interface Capacity {
  /** How many deliveries that have ended, and how long they may be together. */
  ended: number
  endedLength: number
  /** The same for those that hold an Idempotency-Key. */
  keys: number
  keysLength: number
  /** How long what is kept of what was to be sent may be together; the last is kept in any case. */
  contentLength: number
}

const mebibyte = 1024 * 1024
const defaultCapacity: Capacity = {
  ended: 10_000, endedLength: 8 * mebibyte, keys: 100_000, keysLength: 32 * mebibyte, contentLength: 64 * mebibyte,
}

/** How far what is in a place of memory is from being in the database, where it may still change: in one byte. */
const mark = { none: 0, new: 1, changed: 2, written: 3 } as const
type Mark = typeof mark[keyof typeof mark]

/** A delivery that has ended and is to be written into the database. */
export interface Unwritten {
  readonly place: number
  /** As `toText` has it. */
  readonly text: string
  /** What was to be sent, as JSON; absent where that is not kept. */
  readonly content?: string
  /** Whether it was written before, and has changed since. */
  readonly isKnown: boolean
}

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
  /** What was to be sent of those that have ended, as JSON, by their IDs. */
  private readonly contents = new Map<string, string>()
  private contentLength = 0
  /** For each place of the ring. A set of places would cost more of the garbage collector's time than all that is kept. */
  private readonly marks: Uint8Array
  private toWrite = 0
  private unwrittenLength = 0
  private readonly capacity: Capacity
  /** Whether what was to be sent is kept of a delivery that has ended like this. */
  keeps: (state: State) => boolean = state => state !== 'sent'
  /** Told of each delivery that has ended, or has changed after that. */
  onUnwritten: () => void = () => undefined

  constructor(private readonly clock: Clock, capacity: Partial<Capacity> = {}) {
    this.capacity = { ...defaultCapacity, ...capacity }
    this.marks = new Uint8Array(this.capacity.ended)
  }

  insert(delivery: Delivery, position: number, items: readonly ParsedItem[]): void {
    const { id, key } = delivery
    if (key !== null) {
      if (this.keys.has(key)) throw new Error('this Idempotency-Key is taken')
      this.setKey(key, delivery)
    }
    if (isUnfinished(delivery.state)) this.active.set(id, { delivery, position, items, isOurs: true })
    else this.end(delivery, items)
  }

  /** Tells of a delivery of another store, which cannot be written to at present, until it is discarded. */
  remember(delivery: Delivery): void {
    if (delivery.key !== null) this.setKey(delivery.key, delivery)
    this.put(this.placeOf(delivery.id), '')
    this.append(delivery)
  }

  /** How many have ended and are not written into a database. */
  get unwrittenCount(): number {
    return this.toWrite
  }

  /** Whether so much is to be written that it should not wait. */
  get isFull(): boolean {
    const { ended, endedLength, contentLength } = this.capacity
    // What is written has its content no more.
    return this.unwrittenCount > ended / 5 || this.unwrittenLength > endedLength / 2 || this.contentLength > contentLength / 4
  }

  /** Some of those that have ended and are not written into a database, the oldest first. */
  unwritten(limit: number): Unwritten[] {
    const found: Unwritten[] = []
    const { ended } = this.capacity
    const amount = Math.min(limit, this.unwrittenCount)
    for (let offset = 0; offset < ended && found.length < amount; offset++) {
      const place = (this.droppedCount + offset) % ended
      const text = this.ended[place]
      if (!text || !this.isUnwritten(place)) continue
      const content = this.contents.get(idOf(text))
      found.push({ place, text, isKnown: this.isWritten(place), ...content !== undefined && { content } })
    }
    return found
  }

  /** These are in the database: what may still change stays known here as well. */
  release<T extends Unwritten>(written: readonly T[], mayChange: (entry: T) => boolean): void {
    for (const entry of written) {
      const { place, text } = entry
      const present = this.ended[place]
      if (present !== text) {
        // It has changed meanwhile, or another one has its place.
        if (present && idOf(present) === idOf(text)) this.setMark(place, mark.changed)
        continue
      }
      this.forgetContent(idOf(text))
      if (mayChange(entry)) this.setMark(place, mark.written)
      else this.put(place, '')
    }
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
    if (isUnfinished(delivery.state)) {
      if (!active) this.active.set(id, { delivery, position: noPosition, items: this.readContent(id) ?? [], isOurs: true })
      this.put(place, '')
      if (delivery.key !== null) this.setKey(delivery.key, delivery)
    } else if (active) {
      this.active.delete(id)
      this.end(delivery, active.items)
    } else {
      this.put(place, this.writeEnded(delivery))
      if (!this.keeps(delivery.state)) this.forgetContent(id)
      this.noteUnwritten(place)
    }
    return true
  }

  amend(delivery: Delivery, from: readonly State[], change: Change): boolean {
    const { id, key, updatedAt } = delivery
    const known = this.get(id) ?? (key === null ? undefined : this.findByKey(key))
    return known?.updatedAt === updatedAt && this.update(delivery, from, change)
  }

  requeue(delivery: Delivery, from: readonly State[], change: Change, position: number): boolean {
    if (!this.amend(delivery, from, change)) return false
    const active = this.active.get(delivery.id)
    if (active) active.position = position
    return true
  }

  withdraw(id: string): boolean {
    const active = this.active.get(id)
    if (active?.delivery.state !== 'queued' || active.position === noPosition || active.delivery.inDoubt) return false
    this.discard(id)
    return true
  }

  discard(id: string): void {
    const key = this.get(id)?.key
    if (key) this.deleteKey(key)
    this.forgetContent(id)
    if (!this.active.delete(id)) this.put(this.placeOf(id), '')
  }

  get(id: string): Delivery | undefined {
    return this.active.get(id)?.delivery ?? this.readAt(this.placeOf(id))
  }

  findByKey(key: string): Delivery | undefined {
    const known = this.keys.get(key)
    return typeof known === 'string' ? fromText(known) : known
  }

  releaseKey(key: string): void {
    const delivery = this.findByKey(key)
    if (!delivery) return
    delivery.key = null
    this.deleteKey(key)
    if (!this.active.get(delivery.id)) this.put(this.placeOf(delivery.id), toText(delivery))
  }

  list(filter: ListFilter): Delivery[] {
    const mayMatch = roughly(filter)
    const found = this.active.values().map(({ delivery }) => delivery).filter(delivery => matches(delivery, filter))
    // IDs sort as deliveries were accepted, and a text begins with its ID.
    const texts = this.ended.filter(text => text !== '' && mayMatch(text)).sort()
    for (let left = filter.limit; left > 0;) {
      const text = texts.pop()
      if (text === undefined) break
      const delivery = fromText(text)
      if (!matches(delivery, filter)) continue
      found.push(delivery)
      left--
    }
    return found.sort((a, b) => a.id < b.id ? 1 : -1).slice(0, filter.limit)
  }

  getQueued(id: string): QueuedDelivery | undefined {
    const active = this.active.get(id)
    if (active) return active.position === noPosition ? undefined : active
    const items = this.readContent(id)
    const delivery = items && this.get(id)
    return delivery && { delivery, position: noPosition, items, isOurs: true }
  }

  /** What was to be sent, where that is known here. */
  items(id: string): readonly ParsedItem[] | undefined {
    return this.active.get(id)?.items ?? this.readContent(id)
  }

  /** Whether it is known here what was to be sent. */
  hasContent(id: string): boolean {
    return this.active.get(id) !== undefined || this.contents.has(id)
  }

  /** Forgets what was to be sent of all that have ended. */
  forgetContents(): void {
    this.contents.clear()
    this.contentLength = 0
  }

  /** The states of those that have ended, are in no database yet, and are not below this ID; of a caller only, where one is given. */
  * states(from: string, caller?: string): Generator<{ id: string, state: string }> {
    for (const [place, text] of this.ended.entries()) {
      const id = idOf(text)
      if (id < from || this.isWritten(place) || (caller !== undefined && fromText(text).caller !== caller)) continue
      yield { id, state: stateOf(text) }
    }
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

  private end(delivery: Delivery, items: readonly ParsedItem[]): void {
    if (items.length > 0 && this.keeps(delivery.state)) this.keepContent(delivery.id, JSON.stringify(writeItems(items)))
    this.noteUnwritten(this.append(delivery))
  }

  /**
   * Puts a delivery behind those that have ended; the oldest go where there is no room.
   *
   * @returns its place
   */
  private append(delivery: Delivery): number {
    const place = this.endedCount++ % this.capacity.ended
    this.put(place, '')
    this.put(place, this.writeEnded(delivery))
    this.droppedCount = Math.max(this.droppedCount, this.endedCount - this.capacity.ended)
    while (this.endedLength > this.capacity.endedLength) this.put(this.droppedCount++ % this.capacity.ended, '')
    return place
  }

  private noteUnwritten(place: number): void {
    // It may not have been there, or have been too long to be kept.
    if (!this.ended[place]) return
    this.setMark(place, this.isWritten(place) ? mark.changed : mark.new)
    this.onUnwritten()
  }

  private setMark(place: number, value: Mark): void {
    this.countUnwritten(place, -1)
    this.marks[place] = value
    this.countUnwritten(place, 1)
  }

  private countUnwritten(place: number, sign: 1 | -1): void {
    if (!this.isUnwritten(place)) return
    this.toWrite += sign
    this.unwrittenLength += sign * (this.ended[place]?.length ?? 0)
  }

  private isUnwritten(place: number): boolean {
    return this.marks[place] === mark.new || this.marks[place] === mark.changed
  }

  /** Whether the database has it, perhaps as it was before. */
  private isWritten(place: number): boolean {
    return this.marks[place] === mark.written || this.marks[place] === mark.changed
  }

  private keepContent(id: string, content: string): void {
    this.contents.set(id, content)
    this.contentLength += content.length
    // A Map keeps the order in which its entries came.
    for (const oldest of this.contents.keys()) {
      if (this.contentLength <= this.capacity.contentLength || oldest === id) return
      this.forgetContent(oldest)
    }
  }

  private forgetContent(id: string): void {
    this.contentLength -= this.contents.get(id)?.length ?? 0
    this.contents.delete(id)
  }

  private readContent(id: string): ParsedItem[] | undefined {
    const content = this.contents.get(id)
    return content === undefined ? undefined : readItems(JSON.parse(content))
  }

  /** The text of a delivery that has ended, which is kept for its key as well. */
  private writeEnded(delivery: Delivery): string {
    // What comes out of there is held together by several objects, which take more memory than the text itself.
    const text = Buffer.from(toText(delivery)).toString()
    if (delivery.key !== null) this.setKey(delivery.key, text)
    return text
  }

  private put(place: number, text: string): void {
    if (place < 0) return
    if (text === '') this.forgetPlace(place)
    this.endedLength += text.length - (this.ended[place]?.length ?? 0)
    this.countUnwritten(place, -1)
    this.ended[place] = text
    this.countUnwritten(place, 1)
  }

  private forgetPlace(place: number): void {
    const text = this.ended[place]
    if (text) this.forgetContent(idOf(text))
    this.setMark(place, mark.none)
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
    const head = textHead + id
    return this.ended.findIndex(text => text.startsWith(head))
  }

  private readAt(place: number): Delivery | undefined {
    const text = this.ended[place]
    return text ? fromText(text) : undefined
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

/** The ID that a text begins with. */
function idOf(text: string): string {
  return text.slice(textHead.length, text.indexOf('"', textHead.length))
}

/** The state, which comes right behind that. */
function stateOf(text: string): string {
  const [state = ''] = text.slice(textHead.length + idOf(text).length + '","'.length).split('"', 1)
  return state
}

/** What tells of most texts that do not match, without reading all of each: that takes long. */
function roughly({ states, since, until, before, caller, text }: ListFilter): (stored: string) => boolean {
  const from = since === undefined ? '' : textHead + lowestId(since)
  const ends = [...before === undefined ? [] : [before], ...until === undefined ? [] : [lowestId(until)]].map(id => textHead + id)
  const name = caller === undefined ? '' : writeCaller(caller)
  const pattern = text === undefined ? undefined : textPattern(text, 2)
  return stored => stored >= from && ends.every(end => stored < end) && stored.includes(name)
    && (states === undefined || states.some(state => state === stateOf(stored))) && pattern?.test(stored) !== false
}

/** What has not ended counts nothing: it is bounded by the queues. */
function lengthOf(value: Delivery | string | undefined): number {
  return typeof value === 'string' ? value.length : 0
}
