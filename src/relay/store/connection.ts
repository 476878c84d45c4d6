import { Database, type Statement } from 'node-sqlite3-wasm'
import { RelayError } from '../../errors'
import type { Shape } from '../../lib/shape'
import { migrations } from './schema'
import type { Value, Writer } from './store'
import { say } from '../../texts/text'

/** Runs statements on one open database. Errors are those of SQLite: texts without codes. */
export class Connection implements Writer {
  private readonly database: Database
  /** Prepared statements by their text. The texts are few: lists are bound as JSON. */
  private readonly statements = new Map<string, Statement>()

  /**
   * @param path the file; `:memory:` for none
   * @param pragmas statements that come before everything else
   */
  constructor(path: string, pragmas: readonly string[] = []) {
    this.database = new Database(path)
    try {
      for (const pragma of pragmas) this.database.exec(pragma)
    } catch (error) {
      this.close()
      throw error
    }
  }

  /**
   * Brings the tables to the present version.
   *
   * @returns the version of the file, if that is newer than this release knows; nothing is changed then
   */
  migrate(): number | undefined {
    const version = Number(this.value('PRAGMA user_version') ?? 0)
    if (version > migrations.length) return version
    for (const [index, statements] of migrations.entries()) {
      if (index < version) continue
      this.transaction(() => {
        this.database.exec(statements)
        this.database.exec(`PRAGMA user_version = ${index + 1}`)
      })
    }
  }

  all<T>(shape: Shape<T>, sql: string, ...values: readonly Value[]): T[] {
    const rows: readonly unknown[] = this.execute(sql, statement => statement.all([...values]))
    return rows.map(row => {
      if (!shape(row)) throw new RelayError('store-down', say('row-damaged'))
      return row
    })
  }

  first<T>(shape: Shape<T>, sql: string, ...values: readonly Value[]): T | undefined {
    // `get` would leave an open read behind, which keeps the write-ahead log from being reset.
    return this.all(shape, `${sql} LIMIT 1`, ...values)[0]
  }

  run(sql: string, ...values: readonly Value[]): number {
    return this.execute(sql, statement => statement.run([...values]).changes)
  }

  /** The only value of a statement; `undefined` without a row. */
  value(sql: string): unknown {
    const [row] = this.execute(sql, statement => statement.all())
    return row && Object.values(row)[0]
  }

  /** Runs a function in a transaction. @throws what it throws, or the error of SQLite; nothing was written then */
  transaction<T>(write: () => T): T {
    this.run('BEGIN IMMEDIATE')
    try {
      const result = write()
      this.run('COMMIT')
      return result
    } catch (error) {
      // SQLite itself has rolled back after some errors.
      if (this.database.inTransaction) this.run('ROLLBACK')
      throw error
    }
  }

  get isInTransaction(): boolean {
    return this.database.inTransaction
  }

  /** Closes the database. A statement that is left open would keep it, and its lock. */
  close(): void {
    for (const sql of [...this.statements.keys()]) this.finalize(sql)
    if (this.database.isOpen) this.database.close()
  }

  /** Gives the database up without writing: it is not closed, which would change its files. Its descriptors stay open. */
  abandon(): void {
    this.statements.clear()
  }

  /** A statement that failed would fail again at its next use, so it is prepared anew. */
  private execute<T>(sql: string, work: (statement: Statement) => T): T {
    let statement = this.statements.get(sql)
    if (!statement) this.statements.set(sql, statement = this.database.prepare(sql))
    try {
      return work(statement)
    } catch (error) {
      this.finalize(sql)
      throw error
    }
  }

  private finalize(sql: string): void {
    try {
      this.statements.get(sql)?.finalize()
    } catch {
      // It reports the error of its last use again.
    }
    this.statements.delete(sql)
  }
}
