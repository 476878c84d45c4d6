import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const folders: string[] = []

process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** A folder that is removed when this process ends, because programs started by a test may write to it until then. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'relay-test-'))
  folders.push(folder)
  return folder
}
