import { Database, SQLite3Error } from 'node-sqlite3-wasm'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { until } from './until'

/** The prototype of statements, which the library does not export. */
function statements(): object {
  const database = new Database(':memory:')
  const statement = database.prepare('SELECT 1')
  const prototype = Reflect.getPrototypeOf(statement) ?? {}
  statement.finalize()
  database.close()
  return prototype
}

/** Makes the data files of this process fail: all writes (`run`), or all reads (`all`). The function returned ends that. */
export function failFiles(kind: 'run' | 'all', error: Error = new SQLite3Error('disk I/O error')): () => void {
  const prototype = statements()
  const method: unknown = Reflect.get(prototype, kind)
  Reflect.set(prototype, kind, () => {
    throw error
  })
  return () => void Reflect.set(prototype, kind, method)
}

/** Changes the data file of a relay that was unloaded. */
export async function editFile(dataDir: string, change: (database: Database) => void): Promise<void> {
  await until('the file was given up', () => !existsSync(join(dataDir, 'relay.lock')))
  const database = new Database(join(dataDir, 'relay.db'))
  database.exec('PRAGMA locking_mode=EXCLUSIVE; BEGIN')
  change(database)
  database.exec('COMMIT')
  database.close()
}
