// Gives the event loop a turn, which statements do not.
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { RelayError } from '../../errors'
import type { Log } from '../../lib/log'
import { isString, isWhole, nullable, objectOf } from '../../lib/shape'
import type { ParsedItem, Target } from '../../message/model'
import { readItems, writeItems } from '../../message/parse'
import { writeTarget } from '../../message/target'
import { parseTexts } from '../../texts/text'
import type { Reader, Value, Writer } from '../store/store'
import { states, unfinished, type Delivery, type State } from './delivery'
import { conditionsOf, isUnindexed, matches, rangeOf, type Filter, type ListFilter } from './filter'
import { columns, fromRow, isRow, keepsContent, toRow, type Row } from './row'
import type { RecordContent } from './summary'
import { say } from '../../texts/text'

/** How many rows a search without an index looks through before other work gets a turn, and how many a list reads at once at least. */
const stretch = 2_000
const least = 20
/** The largest content, in characters: SQLite works with it in memory, several times. */
const largest = 64 * 1024 * 1024
/** How many deliveries of a thread are read at each end. */
const threadEnds = 50

const select = `SELECT ${columns.join(', ')} FROM deliveries WHERE `
const written = [...columns, 'items']
const insert = `INSERT INTO deliveries (${written.join(', ')}) VALUES (${written.map(() => '?').join(', ')})
  ON CONFLICT (id) DO UPDATE SET ${written.map(name => `${name} = excluded.${name}`).join(', ')}`
const isId = objectOf({ id: isString })
const isContent = objectOf({ items: nullable(isString) })
const isCount = objectOf({ state: isString, count: isWhole })

/** The table of deliveries: those that wait, and the records of those that ended. A method that writes is called inside a commit. */
export class DeliveriesTable {
  /** The damaged rows that the log has. */
  private readonly damaged = new Set<string>()

  constructor(
    private readonly store: Reader,
    private readonly options: { recordContent: RecordContent, logger: Pick<Log, 'warn'> },
  ) {}

  /** Writes a delivery with its content, in place of an earlier record. @throws RelayError `too-large` */
  insert(writer: Writer, delivery: Delivery, items: readonly ParsedItem[]): void {
    const row = toRow(delivery)
    const isKept = items.length > 0 && keepsContent(delivery.state, this.options.recordContent)
    const content = isKept ? JSON.stringify(writeItems(items)) : null
    if (content !== null && content.length > largest) throw new RelayError('too-large', say('content-too-large'))
    writer.run(insert, ...columns.map(name => row[name]), content)
  }

  /** Writes the present state of a delivery; its content is dropped if it is not to be kept any more. */
  update(writer: Writer, delivery: Delivery): void {
    const { id, state, target, bot, key, updated_at: at, summary, record } = toRow(delivery)
    const dropped = keepsContent(delivery.state, this.options.recordContent) ? '' : ', items = NULL'
    writer.run(`UPDATE deliveries SET state = ?, updated_at = ?, summary = ?, record = ?${dropped} WHERE id = ?`, state, at, summary, record, id)
    // These have indexes, or are part of one, and hardly ever change: SQLite would write the index each time.
    writer.run('UPDATE deliveries SET target = ?, bot = ?, key = ? WHERE id = ? AND (target, bot, key) IS NOT (?, ?, ?)', target, bot, key, id, target, bot, key)
  }

  remove(writer: Writer, id: string): void {
    writer.run('DELETE FROM deliveries WHERE id = ?', id)
  }

  find(id: string): Delivery | undefined {
    return this.select('id = ?', id)[0]
  }

  findByKey(key: string): Delivery | undefined {
    return this.select('key = ?', key)[0]
  }

  /** The content of a delivery; `undefined` if it is not kept. */
  items(id: string): readonly ParsedItem[] | undefined {
    const content = this.store.first(isContent, 'SELECT items FROM deliveries WHERE id = ?', id)?.items
    try {
      return typeof content === 'string' ? readItems(parseTexts(content)) : undefined
    } catch {
      this.reportDamage(id)
    }
  }

  /** The deliveries among these whose content is kept. */
  withContent(ids: readonly string[]): string[] {
    const sql = 'SELECT id FROM deliveries WHERE id IN (SELECT value FROM json_each(?)) AND items IS NOT NULL'
    return this.store.all(isId, sql, JSON.stringify(ids)).map(({ id }) => id)
  }

  /** What an earlier process left: all that has not ended, and what ended `unanswered` since a time in milliseconds since the epoch. */
  left(since: number): Delivery[] {
    return this.select(`state IN ('${unfinished.join(`', '`)}') OR (state = 'unanswered' AND updated_at >= ?)`, since)
  }

  /** The last deliveries through a bot to a target, the newest first. */
  lastTo(bot: string, target: Target, limit: number): Delivery[] {
    return this.select('target = ? AND bot = ? ORDER BY id DESC LIMIT ?', writeTarget(target), bot, limit)
  }

  /**
   * The deliveries of a thread through a bot to a target, the oldest first, since a time in milliseconds since the epoch. Of a long thread,
   * only its first and last ones.
   */
  inThread(thread: string, bot: string, target: Target, since: number): Delivery[] {
    const { sql, values } = conditionsOf({ thread, bot, targets: [target] })
    const [from] = rangeOf({ since })
    const ends = (['ASC', 'DESC'] as const).map(order => this.select(`id >= ?${sql} ORDER BY id ${order} LIMIT ${threadEnds}`, from, ...values))
    const [first = [], last = []] = ends
    return [...first, ...last.reverse().filter(({ id }) => first.every(each => each.id < id))]
  }

  /** Lists deliveries in the order of the filter. A damaged row is left out, with a line in the log. */
  async list(filter: ListFilter): Promise<Delivery[]> {
    const { limit, order } = filter
    const { sql, values } = conditionsOf(filter)
    const direction = order === 'asc' ? 'ASC' : 'DESC'
    const size = Math.max(limit, least)
    const found: Delivery[] = []
    for await (const range of this.stretches(filter)) {
      for (let [from, to] = range; from < to;) {
        const rows = this.store.all(isRow, `${select}id >= ? AND id < ?${sql} ORDER BY id ${direction} LIMIT ?`, from, to, ...values, size)
        found.push(...this.read(rows).filter(each => matches(each, filter)))
        const last = rows.length === size ? rows.at(-1)?.id : undefined
        if (found.length >= limit) return found.slice(0, limit)
        if (last === undefined) break
        if (order === 'asc') from = `${last}0`
        else to = last
        await yieldToOthers()
      }
    }
    return found
  }

  /** Counts the deliveries of a filter by state. */
  async count(filter: Filter): Promise<Map<State, number>> {
    const counts = new Map<State, number>()
    const { sql, values } = conditionsOf(filter)
    const range = `id >= ? AND id < ?${sql}`
    const add = (name: string, count: number): void => {
      const state = states.find(each => each === name)
      if (state) counts.set(state, (counts.get(state) ?? 0) + count)
    }
    for await (const edges of this.stretches(filter)) {
      if (filter.text === undefined) {
        const rows = this.store.all(isCount, `SELECT state, count(*) AS count FROM deliveries WHERE ${range} GROUP BY state`, ...edges, ...values)
        for (const { state, count } of rows) add(state, count)
      } else {
        // SQL finds the text in other fields of the summary as well.
        for (const found of this.select(range, ...edges, ...values)) if (matches(found, filter)) add(found.state, 1)
      }
    }
    return counts
  }

  /** The IDs of a filter, in ranges of so many rows if there is no index for it: one statement for all of them would block the process. */
  async* stretches(filter: Filter & Pick<ListFilter, 'order'>): AsyncGenerator<[from: string, to: string]> {
    const isUp = filter.order === 'asc'
    const edge = `SELECT id FROM deliveries WHERE id >= ? AND id < ? ORDER BY id ${isUp ? 'ASC' : 'DESC'} LIMIT 1 OFFSET ${stretch}`
    for (let [from, to] = rangeOf(filter); from < to;) {
      const next = isUnindexed(filter) ? this.store.all(isId, edge, from, to)[0]?.id : undefined
      if (isUp) {
        yield [from, next ?? to]
        from = next ?? to
      } else {
        yield [next ?? from, to]
        to = next ?? from
      }
      await yieldToOthers()
    }
  }

  private select(condition: string, ...values: readonly Value[]): Delivery[] {
    return this.read(this.store.all(isRow, select + condition, ...values))
  }

  /** Reads rows, and leaves damaged ones out. */
  private read(rows: readonly Row[]): Delivery[] {
    return rows.flatMap(row => {
      try {
        return [fromRow(row)]
      } catch {
        this.reportDamage(row.id)
        return []
      }
    })
  }

  private reportDamage(id: string): void {
    if (this.damaged.has(id)) return
    this.damaged.add(id)
    this.options.logger.warn(say('record-damaged', { id }))
  }
}
