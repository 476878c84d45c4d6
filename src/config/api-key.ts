import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { v4 as uuid } from 'uuid'
import { codeOf } from '../errors'
import { say } from '../texts/text'
import type { Log } from '../lib/log'

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
export function provideKey(app: object, configured: string, dataDir: string, logger: Log): string | undefined {
  const file = join(dataDir, keyFileName)
  if (configured) {
    logger.info(say('key-configured'))
    removeOld(file, logger)
    return configured
  }
  const key = generated.get(app) ?? uuid()
  try {
    write(file, `${key}\n`)
  } catch (error) {
    logger.error(say('key-not-written', { file, code: codeOf(error) }))
    return
  }
  generated.set(app, key)
  logger.info(say('key-generated', { file }))
  return key
}

/** Removes the file of an earlier generated key, which opens nothing any more and would mislead. */
function removeOld(file: string, logger: Log): void {
  try {
    rmSync(file, { force: true })
  } catch (error) {
    if (codeOf(error) !== 'ENOTDIR') logger.warn(say('old-key-file', { file, code: codeOf(error) }))
  }
}

/** Writes a new file, because others might be able to read an old one. A new folder is readable only by its owner. */
function write(file: string, secret: string): void {
  mkdirSync(join(file, '..'), { recursive: true, mode: 0o700 })
  rmSync(file, { force: true })
  writeFileSync(file, secret, { mode: 0o600, flag: 'wx' })
}
