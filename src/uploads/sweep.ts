import type { Dirent } from 'node:fs'
import { lstat, opendir, readdir, rmdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { isFolderName, parseTemporaryName } from './layout'
import { isExpired } from './retention'

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

/**
 * Age, in milliseconds, from which an unfinished upload is that of a process which ended. No upload takes nearly as long, so
 * this spares those of another process that shares the directory.
 */
const staleAfter = 60 * 60 * 1000

/**
 * Goes once through the upload directory. It touches only `<uuid v4>/` folders and the plugin's own temporary files, follows
 * no links, and takes one thing at a time: a sweep of 100,000 files then delays nothing else that the process does.
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
    // A folder that was empty before may be one that another process is about to move its file into.
    if (left === 0 && (entries.length > 0 || isStale((await lstat(folder)).mtimeMs))) await rmdir(folder)
  }

  async function sweepFile(path: string, id: string): Promise<boolean> {
    const { mtimeMs } = await lstat(path)
    // Nothing may come between this look at the holds and the call that removes: a hold taken later finds no file.
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

  /** One failure must not end the sweep. That something has gone, or came into a folder meanwhile, is none. */
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
