import type { Logger } from 'koishi'
import { chmodSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { v4 as uuid } from 'uuid'

/**
 * The API key: the one that is configured, otherwise a new one, written to `api-key` in the data folder and readable by its owner
 * only. The log tells which, and names the file, but never holds the key.
 *
 * @param configured empty when there is none
 * @returns `undefined` when the new key cannot be written, and so nobody could ever know it
 */
export function provideKey(configured: string, dataDir: string, logger: Logger): string | undefined {
  if (configured) {
    logger.info('the API key is configured')
    return configured
  }
  const key = uuid()
  const file = join(dataDir, 'api-key')
  try {
    write(file, `${key}\n`)
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    logger.error('%s', `the relay does not run, for its new API key cannot be written to ${file} (${reason}): `
    + 'set WEBHOOK_API_KEY, or DATA_DIR to a folder that can be written')
    return
  }
  logger.info('%s', `the API key was generated: it is in the file ${file}`)
  return key
}

/**
 * Writes a secret under a temporary name first: whoever reads the file while a bot starts gets all of it. Where its folder is not there
 * yet, it is made for its owner only.
 */
function write(file: string, secret: string): void {
  const temporary = `${file}.${process.pid}.tmp`
  mkdirSync(join(file, '..'), { recursive: true, mode: 0o700 })
  writeFileSync(temporary, secret, { mode: 0o600 })
  chmodSync(temporary, 0o600)
  renameSync(temporary, file)
}
