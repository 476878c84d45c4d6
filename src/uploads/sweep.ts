import type { Context, Logger } from 'koishi'
import { lstat, opendir, readdir, rmdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { isFolderName, isTemporaryName } from './names'

/** What a sweep did: how many files it removed, and what could not be looked at or removed. For the log: the messages hold paths. */
export interface SweepResult { removed: number, errors: unknown[] }

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
  const isOlder = async (path: string, age: number): Promise<boolean> => now - (await lstat(path)).mtimeMs > age
  const removeFile = async (id: string, age: number): Promise<void> => {
    // Nothing is awaited between the look at the holds and the removal: a later holder finds that the file is gone.
    if (!await isOlder(join(directory, id), age) || isHeld(id)) return
    await unlink(join(directory, id))
    result.removed++
  }
  /** One failure must not end the sweep. A file that has gone, or a folder that is in use, is no failure. */
  const attempt = (step: Promise<unknown>): Promise<unknown> => step.catch((error: unknown) => {
    if (!(error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTEMPTY'))) result.errors.push(error)
  })
  const sweepFolder = async (folder: string): Promise<void> => {
    const entries = await readdir(join(directory, folder), { withFileTypes: true })
    for (const { name } of entries.filter(entry => entry.isFile())) await attempt(removeFile(`${folder}/${name}`, retention))
    // An upload may be about to move its file into a folder that was empty before: only an old one is removed.
    if (entries.length > 0 || await isOlder(join(directory, folder), staleAfter)) await rmdir(join(directory, folder))
  }
  const sweepAll = async (): Promise<void> => {
    for await (const entry of await opendir(directory)) {
      if (signal?.aborted) return
      if (entry.isDirectory() && isFolderName(entry.name)) await attempt(sweepFolder(entry.name))
      else if (entry.isFile() && isTemporaryName(entry.name)) await attempt(removeFile(entry.name, staleAfter))
    }
  }
  await attempt(sweepAll())
  return result
}
