import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { day } from '../../lib/time'
import type { RunningOptions } from '../options'
import { isString, objectOf } from '../../lib/shape'
import type { Value } from '../store/store'
import { isUnfinished, states, unfinished } from './delivery'
import type { DeliveriesTable } from './deliveries-table'
import { lowestId } from './filter'

/** The most rows that one commit removes, so that other work gets its turn. */
const chunk = 250
const isId = objectOf({ id: isString })

/** Removes what is not to be kept any more, some rows at a time. */
export class Purge {
  private isRunning = false
  /** Whether all content was checked against the setting `recordContent`, which may have changed since it was written. */
  private isChecked = false

  constructor(
    private readonly options: Pick<RunningOptions, 'clock' | 'retention' | 'recordLimit' | 'recordContent' | 'store' | 'stop'>,
    private readonly table: DeliveriesTable,
  ) {}

  /** Removes records past the retention or beyond the limit, and content that is not kept. One run at a time. @throws RelayError */
  async run(): Promise<void> {
    if (this.isRunning) return
    this.isRunning = true
    try {
      await this.removeOld()
      await this.dropContent()
    } finally {
      this.isRunning = false
    }
  }

  private async removeOld(): Promise<void> {
    const { clock, retention, recordLimit, store } = this.options
    const wall = clock.wall()
    // Nothing depends on these rows: they have ended, with no Idempotency-Key or an expired one.
    const done = `state NOT IN ('${unfinished.join(`', '`)}') AND (key IS NULL OR id < ?)`
    const remove = 'DELETE FROM deliveries WHERE id IN'
    await this.inChunks(remove, `${done} AND id < ? AND updated_at < ?`, lowestId(wall - day), lowestId(wall - retention), wall - retention)
    const [beyond] = store.all(isId, 'SELECT id FROM deliveries ORDER BY id DESC LIMIT 1 OFFSET ?', recordLimit)
    if (beyond) await this.inChunks(remove, `${done} AND id <= ?`, lowestId(wall - day), beyond.id)
  }

  private async dropContent(): Promise<void> {
    const { clock, recordContent } = this.options
    const drop = 'UPDATE deliveries SET items = NULL WHERE id IN'
    if (recordContent === 'none') await this.inChunks(drop, `items IS NOT NULL AND state = 'unanswered' AND updated_at < ?`, clock.wall() - day)
    if (recordContent === 'full' || this.isChecked) return
    const ended = recordContent === 'preview' ? ['sent'] : states.filter(each => !isUnfinished(each) && each !== 'unanswered')
    for await (const [from, to] of this.table.stretches({ text: '', order: 'asc' })) {
      await this.inChunks(drop, `items IS NOT NULL AND state IN ('${ended.join(`', '`)}') AND id >= ? AND id < ?`, from, to)
    }
    this.isChecked = true
  }

  /** Repeats a statement for the rows of a condition until none is left. */
  private async inChunks(statement: string, condition: string, ...values: readonly Value[]): Promise<void> {
    const { store, stop } = this.options
    const sql = `${statement} (SELECT id FROM deliveries WHERE ${condition} LIMIT ${chunk})`
    while (!stop.aborted && store.commit(writer => writer.run(sql, ...values)) === chunk) await yieldToOthers()
  }
}
