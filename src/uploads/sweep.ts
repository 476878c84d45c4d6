import type { Context, Logger } from 'koishi'
import { lstat, opendir, readdir, rmdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { isFolderName, isTemporaryName } from './names'

/** What a sweep did, in files. */
export interface SweepResult {
  removed: number
  /** What could not be looked at or removed. For the log: the messages hold paths. */
  errors: unknown[]
}

/** How long an uploaded file stays, in milliseconds. */
export const retention = 24 * 60 * 60 * 1000
/** How often expired uploads are looked for, in milliseconds. */
const interval = 10 * 60 * 1000
/** Age, in milliseconds, from which an unfinished upload was left by a crash. No upload takes nearly as long. */
const staleAfter = 60 * 60 * 1000

/**
 * Removes expired uploads now and every ten minutes, until the context is disposed.
 *
 * @param sweep looks through the upload directory once
 */
export function scheduleSweeps(ctx: Context, sweep: (signal: AbortSignal) => Promise<SweepResult>, logger: Logger): void {
  const lifetime = new AbortController()
  const run = async (): Promise<void> => {
    const { removed, errors } = await sweep(lifetime.signal)
    if (removed > 0) logger.info('%s', `removed ${removed} expired uploads`)
    if (errors.length > 0) logger.warn('%s', `failed to clean up the upload directory, ${errors.length} errors, the first: ${String(errors[0])}`)
  }
  ctx.on('dispose', () => lifetime.abort())
  ctx.setInterval(() => void run(), interval)
  void run()
}

/**
 * Goes once through the upload directory. It touches only `<uuid v4>/` folders and the plugin's own temporary files, and follows no
 * links. It takes one thing at a time, so that a sweep of 100,000 files delays nothing else.
 *
 * @param directory absolute; may be missing
 * @param now in milliseconds since the epoch
 * @param isHeld whether a send uses the file with this ID
 * @param signal ends the sweep early
 */
export async function sweep(directory: string, now: number, isHeld: (id: string) => boolean, signal?: AbortSignal): Promise<SweepResult> {
  const result: SweepResult = { removed: 0, errors: [] }
  await attempt(async () => {
    for await (const entry of await opendir(directory)) {
      if (signal?.aborted) break
      if (entry.isDirectory() && isFolderName(entry.name)) await attempt(() => sweepFolder(entry.name))
      else if (entry.isFile() && isTemporaryName(entry.name)) await attempt(() => removeFile(join(directory, entry.name), staleAfter))
    }
  })
  return result

  async function sweepFolder(uuid: string): Promise<void> {
    const folder = join(directory, uuid)
    const entries = await readdir(folder, { withFileTypes: true })
    for (const { name } of entries.filter(entry => entry.isFile())) {
      await attempt(() => removeFile(join(folder, name), retention, `${uuid}/${name}`))
    }
    // An upload may be about to move its file into a folder that was empty before: only an old one is removed.
    if (entries.length > 0 || await isOlder(folder, staleAfter)) await rmdir(folder)
  }

  async function removeFile(path: string, age: number, id = ''): Promise<void> {
    // Nothing is awaited between the look at the holds and the removal: a later holder finds that the file is gone.
    if (!await isOlder(path, age) || isHeld(id)) return
    await unlink(path)
    result.removed++
  }

  async function isOlder(path: string, age: number): Promise<boolean> {
    return now - (await lstat(path)).mtimeMs > age
  }

  /** One failure must not end the sweep. A file that has gone, or a folder that is in use, is no failure. */
  async function attempt(step: () => Promise<void>): Promise<void> {
    try {
      await step()
    } catch (error) {
      if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTEMPTY')) return
      result.errors.push(error)
    }
  }
}
