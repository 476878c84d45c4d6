import { mkdir, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { codeOf } from '../errors'

/** What Windows answers while another program has a file open. */
const busy: ReadonlySet<string> = new Set(['EACCES', 'EBUSY', 'EPERM'])

/**
 * Writes a file for its owner only, and its folder where that is missing. It is written under a temporary name first, so that a power
 * failure leaves the old content or the new one.
 */
export async function writeWhole(path: string, text: string): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await writeFile(temporary, text, { mode: 0o600, flush: true })
  await moveFile(temporary, path)
}

/** Moves a file. For a second it is tried again where another program has the file open, as virus scanners on Windows have a new one. */
export async function moveFile(from: string, to: string): Promise<void> {
  for (let wait = 30; ; wait *= 2) {
    try {
      await rename(from, to)
      return
    } catch (error) {
      if (!busy.has(codeOf(error)) || wait > 500) throw error
      await delay(wait)
    }
  }
}
