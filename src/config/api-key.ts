import type { Logger } from 'koishi'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { v4 as uuid } from 'uuid'
import { codeOf } from '../errors'

/** What a generated key is written to, in the data folder. */
export const keyFileName = 'api-key'

/** The keys that were made, by their apps: callers go on with theirs when the plugin is loaded again. */
const made = new WeakMap<object, string>()

/**
 * Provides the API key: the configured one, otherwise one that is made at the start of an app and written to `api-key` in the data
 * folder, readable by its owner only. The log names the file, but never holds the key.
 *
 * @param configured empty for none
 * @returns `undefined` when the new key cannot be written, because then no caller could know it
 */
export function provideKey(app: object, configured: string, dataDir: string, logger: Logger): string | undefined {
  if (configured) {
    logger.info('the API key is configured')
    return configured
  }
  const key = made.get(app) ?? uuid()
  const file = join(dataDir, keyFileName)
  try {
    write(file, `${key}\n`)
  } catch (error) {
    logger.error('%s', `the relay cannot start: its new API key cannot be written to ${file} (${codeOf(error)}); `
    + 'set WEBHOOK_API_KEY, or DATA_DIR to a folder that can be written')
    return
  }
  made.set(app, key)
  logger.info('%s', `the API key was generated: it is in the file ${file}`)
  return key
}

/** A new file, because an old one may be open to others; a new folder is for its owner only. */
function write(file: string, secret: string): void {
  mkdirSync(join(file, '..'), { recursive: true, mode: 0o700 })
  rmSync(file, { force: true })
  writeFileSync(file, secret, { mode: 0o600, flag: 'wx' })
}
