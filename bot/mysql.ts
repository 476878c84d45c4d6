import { MySQLDriver } from 'koishi-plugin-database-mysql'
import type { Driver } from 'koishi'
import { setTimeout as delay } from 'node:timers/promises'
import { codeOf } from '../src/errors'

/** How long to wait before a server that cannot be used is tried again, in seconds. */
const retryDelay = 5

interface IndexRow {
  name: string
  field: string
  nonUnique: number | string
  direction: string | null
}

/**
 * The MySQL driver with what minato 3.7 asks of a driver beyond release 3.3 of it: to list, make and drop indexes. The driver's
 * own 3.7, which has them, is not in every registry; where it is there, these stand in for its methods.
 */
export default class CompleteMySQLDriver extends MySQLDriver {
  // The name of the plugin, and of the logger.
  static override readonly name = 'mysql'

  /**
   * Tries until the server can be used. Koishi tries once, and would go on without a database for ever, where a machine starts the bot
   * before the server.
   */
  override async start(): Promise<void> {
    for (let told: string | undefined; ;) {
      try {
        await super.start()
        return
      } catch (error) {
        const reason = codeOf(error)
        if (reason !== told) {
          this.logger.warn('%s', `the database server cannot be used (${reason}): trying again every ${retryDelay} seconds; `
          + 'check that it runs, and the variables DATABASE_HOST, _PORT, _USER, _PASSWORD and _NAME')
        }
        told = reason
        await this.stop()
        await delay(retryDelay * 1000)
      }
    }
  }

  async getIndexes(table: string): Promise<Driver.Index[]> {
    const rows = await this.queue<IndexRow[]>([
      'SELECT INDEX_NAME AS name, COLUMN_NAME AS field, NON_UNIQUE AS nonUnique, COLLATION AS direction',
      'FROM information_schema.statistics WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? ORDER BY INDEX_NAME, SEQ_IN_INDEX',
    ].join(' '), [table])
    const indexes = new Map<string, Driver.Index>()
    for (const { name, field, nonUnique, direction } of rows) {
      const { keys } = indexes.get(name) ?? { keys: {} }
      indexes.set(name, { name, unique: Number(nonUnique) === 0, keys: { ...keys, [field]: direction === 'D' ? 'desc' : 'asc' } })
    }
    return [...indexes.values()]
  }

  async createIndex(table: string, { name, unique, keys }: Driver.Index): Promise<void> {
    const fields = Object.entries(keys).map(([field, direction]) => `${quote(field)} ${direction ?? 'asc'}`)
    const title = name ?? Object.keys(keys).join('+')
    await this.query(`CREATE ${unique ? 'UNIQUE ' : ''}INDEX ${quote(title)} ON ${quote(table)} (${fields.join(', ')})`)
  }

  async dropIndex(table: string, name: string): Promise<void> {
    await this.query(`DROP INDEX ${quote(name)} ON ${quote(table)}`)
  }
}

function quote(name: string): string {
  return `\`${name.replace(/`/g, '``')}\``
}
