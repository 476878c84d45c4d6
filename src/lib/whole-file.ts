import { mkdir, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { codeOf } from '../errors'

/** The error codes of Windows for a file that another program has open. */
const busy: ReadonlySet<string> = new Set(['EACCES', 'EBUSY', 'EPERM'])

/**
 * Writes a file for its owner only, and creates its folder if needed. The file is written under a temporary name first, so that a power
 * failure leaves either the old or the new content.
 */
export async function writeWhole(path: string, text: string): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await writeFile(temporary, text, { mode: 0o600, flush: true })
  await moveFile(temporary, path)
}

/** Moves a file. Retries for about a second while another program has it open, as virus scanners on Windows do with new files. */
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
