import type { ParsedItem } from '../../src/message/model'
import { isUnfinished, type Delivery, type State } from '../../src/relay/delivery/delivery'
import { NotOwner, cutList, matches, type Filter, type Journal, type ListFilter, type OwnerRow, type OwnerStore } from '../../src/relay/journal'
import type { Random } from '../faults/random'
import type { ProcessClock, Timeline } from './clock'

/** The course of one statement. All times are in milliseconds since it was issued. */
export interface StatementFault {
  /** When the statement is executed; absent if it never is. */
  carriedAfter?: number
  /** When the answer comes. `isLost`: an error comes instead, which does not tell whether the statement was executed. */
  answerAfter: number
  isLost: boolean
}

/** A row. A tombstone has no delivery. */
interface Row {
  readonly id: string
  delivery: Delivery | undefined
  items: readonly ParsedItem[] | undefined
  owner: number
  version: number
}

/** The delay before records are written, in milliseconds. */
const recordDelay = 500

/** The data that outlives every process: the table, and the row of the owner. */
export class Database {
  readonly rows = new Map<string, Row>()
  owner: OwnerRow | undefined
  /** Rows that were adopted without an answer. No relay knows them before the next start. */
  readonly orphaned = new Set<string>()
  /** The number of unanswered statements per process. */
  private readonly open = new Map<ProcessClock, number>()
  /** Until when the database does not answer. */
  awayUntil = 0
  private versions = 0

  constructor(
    readonly timeline: Timeline, private readonly random: Random, private readonly nextFault: () => StatementFault | undefined,
    private readonly note: (what: string) => void,
  ) {}

  nextVersion(): number {
    return ++this.versions
  }

  isBusy(process: ProcessClock): boolean {
    return (this.open.get(process) ?? 0) > 0
  }

  /** Issues a statement. Whether it is executed does not depend on the process. */
  run<T>(process: ProcessClock, name: string, statement: () => T): Promise<T> {
    const { now } = this.timeline
    const took = this.random.between(1, 20)
    const isAway = now < this.awayUntil
    const fault = this.nextFault() ?? { carriedAfter: this.random.between(0, took), answerAfter: took, isLost: false }
    this.open.set(process, (this.open.get(process) ?? 0) + 1)
    this.note(`${name} is issued${isAway ? ', the database is away' : ''}`)
    return new Promise((resolve, reject) => {
      let answer: (() => void) | undefined
      if (fault.carriedAfter !== undefined && !isAway) {
        this.timeline.at(now + fault.carriedAfter, () => {
          this.note(`${name} is carried out`)
          try {
            const result = statement()
            answer = () => resolve(result)
          } catch (error) {
            answer = () => reject(error instanceof Error ? error : new Error(String(error)))
          }
        })
      }
      process.deliver(now + fault.answerAfter, () => {
        this.open.set(process, (this.open.get(process) ?? 0) - 1)
        if (fault.isLost) this.note(`${name} got no answer`)
        if (fault.isLost || !answer) reject(new Error('the database did not answer'))
        else answer()
      })
    })
  }
}

/** The journal of one relay. */
export class SimulatedJournal implements Journal, OwnerStore {
  readonly isDurable = true
  private number = 0
  /** The last write of each row. The next one waits for it. */
  private readonly tails = new Map<string, Promise<unknown>>()
  private readonly records = new Map<string, { delivery: Delivery, items: readonly ParsedItem[] }>()
  private cancelTimer: (() => void) | undefined

  constructor(private readonly database: Database, private readonly process: ProcessClock) {}

  insert(delivery: Delivery, items: readonly ParsedItem[]): Promise<void> {
    const { rows } = this.database
    const row = { id: delivery.id, delivery: copy(delivery), items, owner: this.number, version: this.database.nextVersion() }
    return this.write('insert', row.id, () => {
      const present = rows.get(row.id)
      if (present && !present.delivery) throw new Error('it was cancelled')
      if (present) return
      if (this.isKeyOfOther(row.delivery)) throw new Error('two rows cannot have one key')
      rows.set(row.id, row)
    })
  }

  update(delivery: Delivery): Promise<void> {
    const written = copy(delivery)
    const version = this.database.nextVersion()
    const owner = this.number
    return this.write(`update ${written.state}`, delivery.id, () => {
      const row = this.database.rows.get(delivery.id)
      if (!row?.delivery) return
      if (row.owner > owner) throw new NotOwner()
      if (row.version > version) return
      if (this.isKeyOfOther(written)) throw new Error('two rows cannot have one key')
      row.owner = owner
      row.delivery = written
      row.version = version
      if (written.state === 'sent') row.items = undefined
    })
  }

  cancel(id: string): Promise<void> {
    this.records.delete(id)
    const owner = this.number
    return this.write('cancel', id, () => {
      const row = this.database.rows.get(id)
      if (row && row.owner > owner) throw new NotOwner()
      this.database.rows.set(id, { id, delivery: undefined, items: undefined, owner, version: Infinity })
    })
  }

  record(delivery: Delivery, items: readonly ParsedItem[]): void {
    this.records.set(delivery.id, { delivery: copy(delivery), items })
    this.cancelTimer ??= this.process.after(recordDelay, () => {
      this.cancelTimer = undefined
      void this.flush().catch(() => undefined)
    })
  }

  /** Records that could not be written stay for the next flush. */
  async flush(): Promise<void> {
    this.cancelTimer?.()
    this.cancelTimer = undefined
    const records = [...this.records.values()]
    if (records.length === 0) return
    const owner = this.number
    await this.run('flush', () => {
      for (const { delivery, items } of records) {
        this.database.rows.set(delivery.id, {
          id: delivery.id, delivery, items: delivery.state === 'sent' ? undefined : items, owner, version: this.database.nextVersion(),
        })
      }
    })
    for (const record of records) if (this.records.get(record.delivery.id) === record) this.records.delete(record.delivery.id)
  }

  find(id: string): Promise<Delivery | undefined> {
    const recorded = this.records.get(id)
    return recorded ? Promise.resolve(copy(recorded.delivery)) : this.run('find', () => copyOf(this.database.rows.get(id)?.delivery))
  }

  findByKey(key: string): Promise<Delivery | undefined> {
    return this.run('findByKey', () => copyOf(this.deliveries().find(delivery => delivery.key === key)))
  }

  items(id: string): Promise<readonly ParsedItem[] | undefined> {
    const recorded = this.records.get(id)
    return recorded ? Promise.resolve(recorded.items) : this.run('items', () => this.database.rows.get(id)?.items)
  }

  async list({ since = 0, ...filter }: ListFilter): Promise<Delivery[]> {
    await this.flush().catch(() => undefined)
    const isWanted = (delivery: Delivery): boolean => matches(delivery, filter) && delivery.createdAt >= since
    return this.run('list', () => cutList(this.deliveries().filter(isWanted), filter).map(copy))
  }

  withContent(ids: readonly string[]): Promise<readonly string[]> {
    return this.run('withContent', () => ids.filter(id => this.database.rows.get(id)?.items))
  }

  count(filter: Filter & { states: readonly State[] }): Promise<ReadonlyMap<State, number>> {
    return this.run('count', () => {
      const found = this.deliveries().filter(delivery => matches(delivery, filter))
      return new Map(filter.states.map(each => [each, found.filter(({ state }) => state === each).length]))
    })
  }

  adopt(owner: number, since: number): Promise<Delivery[]> {
    this.number = owner
    const { rows, orphaned } = this.database
    const stamped: string[] = []
    let isLost = false
    const adopted = this.run('adopt', () => [...rows.values()].flatMap(row => {
      const { delivery } = row
      if (!delivery || row.owner >= owner) return []
      orphaned.delete(row.id)
      if (!isUnfinished(delivery.state) && (delivery.state !== 'unanswered' || delivery.updatedAt < since)) return []
      row.owner = owner
      stamped.push(row.id)
      if (isLost) orphaned.add(row.id)
      return [copy(delivery)]
    }).sort((a, b) => a.seq - b.seq))
    void adopted.catch(() => {
      isLost = true
      stamped.forEach(id => orphaned.add(id))
    })
    return adopted
  }

  purge(): Promise<void> {
    return this.run('purge', () => undefined)
  }

  ping(): Promise<void> {
    return this.run('ping', () => undefined)
  }

  readOwner(): Promise<OwnerRow | undefined> {
    return this.run('readOwner', () => this.database.owner)
  }

  swapOwner(from: OwnerRow | undefined, to: OwnerRow): Promise<boolean> {
    return this.run('swapOwner', () => {
      const is = this.database.owner
      if (is?.number !== from?.number || is?.beat !== from?.beat || is?.name !== from?.name) return false
      this.database.owner = to
      return true
    })
  }

  private run<T>(name: string, statement: () => T): Promise<T> {
    return this.database.run(this.process, `${name} (owner ${this.number})`, statement)
  }

  private async write(name: string, id: string, statement: () => void): Promise<void> {
    const before = this.tails.get(id)
    const run = (): Promise<void> => this.run(`${name} ${id}`, statement)
    const mine = before ? before.then(run, run) : run()
    this.tails.set(id, mine)
    try {
      await mine
    } finally {
      if (this.tails.get(id) === mine) this.tails.delete(id)
    }
  }

  private isKeyOfOther({ id, key }: Delivery): boolean {
    return key !== null && this.deliveries().some(other => other.id !== id && other.key === key)
  }

  private deliveries(): Delivery[] {
    return [...this.database.rows.values()].flatMap(({ delivery }) => delivery ? [delivery] : [])
  }
}

/** A snapshot of a delivery, because the original changes. */
export function copy(delivery: Delivery): Delivery {
  const { summary, results, open } = delivery
  return { ...delivery, results: [...results], open: [...open], summary: { ...summary, calls: summary.calls.map(call => ({ ...call })) } }
}

function copyOf(delivery: Delivery | undefined): Delivery | undefined {
  return delivery && copy(delivery)
}
