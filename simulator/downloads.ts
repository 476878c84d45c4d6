import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The folder on the platform's own disk into which `download_file` puts files; made when first needed. */
export class DownloadFolder {
  /** Null as long as nothing was downloaded. */
  path: string | null = null
  private making: Promise<string> | null = null
  private count = 0

  /** A path for a new file. */
  async place(name: string): Promise<string> {
    this.making ??= mkdtemp(join(tmpdir(), 'onebot-simulator-'))
    this.path = await this.making
    // Numbered, so that equal names do not meet; no separators, so that it stays inside.
    return join(this.path, `${++this.count}-${name.replace(/[^\p{L}\p{N}._-]/gu, '_').slice(-100)}`)
  }

  async remove(): Promise<void> {
    if (this.making !== null) await rm(await this.making, { recursive: true, force: true })
  }
}
