import { mkdir, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Writes a file for its owner only, and its folder where that is missing. It is written under a temporary name first, so that a power
 * failure leaves the old content or the new one.
 */
export async function writeWhole(path: string, text: string): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await writeFile(temporary, text, { mode: 0o600, flush: true })
  await rename(temporary, path)
}
