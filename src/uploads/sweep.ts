import type { Context, Logger } from 'koishi'
import type { Dirent } from 'node:fs'
import { lstat, opendir, readdir, rmdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { isFolderName, parseTemporaryName } from './names'

/** Bounds and reports of a sweep. */
export interface SweepOptions {
  /** Ends the sweep early; it then resolves with what it has counted. */
  signal?: AbortSignal
  /** Told of each thing that could not be looked at or removed. For the log: the message holds a path. */
  onError?: (error: unknown) => void
}

/** Numbers of files, temporary ones included in `removed`. */
export interface SweepResult {
  removed: number
  kept: number
  failed: number
}

/** What must not be removed, whatever its age. */
export interface SweepGuard {
  /** An upload of this process is writing to this UUID. */
  isActive: (uuid: string) => boolean
  /** A send is using the file with this ID. */
  isHeld: (id: string) => boolean
}

/** How long an uploaded file stays, in milliseconds. */
export const defaultRetention = 24 * 60 * 60 * 1000
/** How often expired uploads are looked for, in milliseconds. */
const interval = 10 * 60 * 1000
/**
 * Age, in milliseconds, from which an unfinished upload is that of a process which ended. No upload takes nearly as long, so those
 * of another process that shares the directory are spared.
 */
const staleAfter = 60 * 60 * 1000

/**
 * Removes expired uploads now and from time to time, until the context is disposed.
 *
 * @param sweep looks through the upload directory once
 */
export function scheduleSweeps(ctx: Context, sweep: (options: SweepOptions) => Promise<SweepResult>, logger: Logger): void {
  const lifetime = new AbortController()
  const run = async (): Promise<void> => {
    let first: unknown
    const { removed, failed } = await sweep({ signal: lifetime.signal, onError: error => first ??= error })
    if (removed > 0) logger.info('%s', `removed ${removed} expired uploads`)
    if (failed > 0) logger.warn('%s', `the upload directory could not be cleaned up, ${failed} failures, the first: ${String(first)}`)
  }
  ctx.on('dispose', () => lifetime.abort())
  ctx.setInterval(() => void run(), interval)
  void run()
}

/**
 * Tells whether a file is past its time. All arguments are in milliseconds.
 *
 * @param modifiedAt when the file was last written, since the epoch
 * @param now since the epoch
 */
export function isExpired(modifiedAt: number, now: number, retention = defaultRetention): boolean {
  return now - modifiedAt > retention
}

/**
 * Goes once through the upload directory. It touches only `<uuid v4>/` folders and the plugin's own temporary files, and follows no
 * links. It takes one thing at a time, so that a sweep of 100,000 files delays nothing else that the process does.
 *
 * @param directory absolute; may be missing
 * @param now in milliseconds since the epoch
 */
export async function sweep(
  directory: string, now: number, { signal, onError }: SweepOptions, { isActive, isHeld }: SweepGuard,
): Promise<SweepResult> {
  const result: SweepResult = { removed: 0, kept: 0, failed: 0 }
  await attempt(async () => {
    for await (const entry of await opendir(directory)) {
      if (signal?.aborted) break
      await attempt(() => sweepEntry(entry))
    }
  })
  return result

  async function sweepEntry(entry: Dirent): Promise<void> {
    const uuid = parseTemporaryName(entry.name)
    if (entry.isDirectory() && isFolderName(entry.name) && !isActive(entry.name)) await sweepFolder(entry.name)
    else if (entry.isFile() && uuid !== undefined && !isActive(uuid)) await sweepTemporary(join(directory, entry.name))
  }

  async function sweepFolder(uuid: string): Promise<void> {
    const folder = join(directory, uuid)
    const entries = await readdir(folder, { withFileTypes: true })
    let left = entries.length
    for (const entry of entries) {
      if (!entry.isFile()) continue
      await attempt(async () => {
        if (await sweepFile(join(folder, entry.name), `${uuid}/${entry.name}`)) left--
      })
    }
    // Another process may be about to move its file into a folder that was empty before: only an old one is removed.
    if (left === 0 && (entries.length > 0 || isStale((await lstat(folder)).mtimeMs))) await rmdir(folder)
  }

  async function sweepFile(path: string, id: string): Promise<boolean> {
    const { mtimeMs } = await lstat(path)
    // Nothing is awaited between this check of the holds and the removal: whoever holds the file later finds that it is gone.
    if (!isExpired(mtimeMs, now) || isHeld(id)) {
      result.kept++
      return false
    }
    await unlink(path)
    result.removed++
    return true
  }

  async function sweepTemporary(path: string): Promise<void> {
    if (!isStale((await lstat(path)).mtimeMs)) return
    await unlink(path)
    result.removed++
  }

  function isStale(modifiedAt: number): boolean {
    return isExpired(modifiedAt, now, staleAfter)
  }

  /** One failure must not end the sweep. That something has gone, or came into a folder meanwhile, is no failure. */
  async function attempt(step: () => Promise<void>): Promise<void> {
    try {
      await step()
    } catch (error) {
      if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTEMPTY')) return
      result.failed++
      onError?.(error)
    }
  }
}
