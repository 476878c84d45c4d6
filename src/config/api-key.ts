import { chmodSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { v4 as uuid } from 'uuid'

/** A generated key, and the file in which its owner finds it. */
export interface GeneratedKey {
  key: string
  file: string
}

/**
 * Makes a new API key and writes it to `api-key` in the data folder, readable by its owner only: the key never appears in a
 * log (document, section 5; contract, "Running it").
 *
 * @throws the error of the file system when it cannot be written
 */
export function generateKey(dataDir: string): GeneratedKey {
  const key = uuid()
  const file = join(dataDir, 'api-key')
  // A temporary name first: whoever reads the file while a bot starts gets a whole key.
  const temporary = `${file}.${process.pid}.tmp`
  mkdirSync(dataDir, { recursive: true })
  writeFileSync(temporary, `${key}\n`, { mode: 0o600 })
  chmodSync(temporary, 0o600)
  renameSync(temporary, file)
  return { key, file }
}
