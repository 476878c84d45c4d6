import type { Logger } from 'koishi'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { v4 as uuid } from 'uuid'
import { codeOf } from '../errors'

/** The file of a generated key, in the data folder. */
export const keyFileName = 'api-key'

/** The generated key of each app, so that callers can keep their key after a reload of the plugin. */
const generated = new WeakMap<object, string>()

/**
 * Provides the API key: the configured one, otherwise one generated at the start of the app and written to `api-key` in the data folder,
 * readable only by its owner. The log names the file, but never contains the key. With a configured key, the file goes.
 *
 * @param configured the key in the settings; empty for none
 * @returns `undefined` if the new key cannot be written, because then no caller could know it
 */
export function provideKey(app: object, configured: string, dataDir: string, logger: Logger): string | undefined {
  const file = join(dataDir, keyFileName)
  if (configured) {
    logger.info('the API key is configured')
    removeOld(file, logger)
    return configured
  }
  const key = generated.get(app) ?? uuid()
  try {
    write(file, `${key}\n`)
  } catch (error) {
    logger.error('%s', `the relay cannot start: its new API key cannot be written to ${file} (${codeOf(error)}); `
    + 'set WEBHOOK_API_KEY, or DATA_DIR to a folder that can be written')
    return
  }
  generated.set(app, key)
  logger.info('%s', `the API key was generated: it is in the file ${file}`)
  return key
}

/** Removes the file of an earlier generated key, which opens nothing any more and would mislead. */
function removeOld(file: string, logger: Logger): void {
  try {
    rmSync(file, { force: true })
  } catch (error) {
    if (codeOf(error) !== 'ENOTDIR') logger.warn('%s', `the file ${file} holds an old API key, and cannot be removed (${codeOf(error)}): remove it`)
  }
}

/** Writes a new file, because others might be able to read an old one. A new folder is readable only by its owner. */
function write(file: string, secret: string): void {
  mkdirSync(join(file, '..'), { recursive: true, mode: 0o700 })
  rmSync(file, { force: true })
  writeFileSync(file, secret, { mode: 0o600, flag: 'wx' })
}
