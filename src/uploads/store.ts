import type { Context } from 'koishi'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { lstat, mkdir, open, opendir, readdir, realpath, rm, rmdir, stat, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { codeOf, RelayError } from '../errors'
import type { Log } from '../lib/log'
import { day, hour, minute } from '../lib/time'
import { say } from '../texts/text'
import { isFolderName, isTemporaryName, parseFileId } from './names'
import { Upload } from './upload'

/** An uploaded file, as a send needs it. */
export interface StoredFile {
  id: string
  /** Absolute, below the configured upload directory. */
  path: string
  name: string
  /** In bytes. */
  size: number
}

/** The result of a sweep: the number of removed files, and the failures. For the log only, because the messages contain paths. */
export interface SweepResult { removed: number, errors: unknown[] }

/** How long an uploaded file stays, in milliseconds. */
export const retention = day
/** The time between two sweeps, in milliseconds. */
const interval = 10 * minute
/** The age, in milliseconds, of an unfinished upload that a crash left behind. No present upload takes nearly as long. */
const staleAfter = hour

/** Makes the names in a folder safe from a power cut, where the system can. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r').catch(() => undefined)
  await folder?.sync().catch(() => undefined)
  await folder?.close()
}

/** The upload directory: `<uuid v4>/<name>` for each file. It may contain other things as well. */
export class UploadStore {
  readonly #holds = new Set<{ id: string }>()

  /**
   * @param directory absolute; created with the first upload, and may be a symbolic link
   * @param onReceived called for each request with files, with their number and their bytes together
   */
  constructor(private readonly directory: string, readonly onReceived: (files: number, bytes: number) => void = () => undefined) {}

  /**
   * Stores the files that `fill` opens: all of them, or none if it fails.
   *
   * @param signal stops this early, with its reason
   * @returns file IDs in the order of `open`
   * @throws RelayError `storage-full`; errors of `fill`, and other errors of the file system
   */
  async write(fill: (upload: Upload) => Promise<void> | void, signal?: AbortSignal): Promise<string[]> {
    const upload = new Upload(this.directory)
    try {
      await mkdir(this.directory, { recursive: true })
      await fill(upload)
      return await upload.commit(signal)
    } catch (error) {
      await upload.discard()
      throw ['ENOSPC', 'EDQUOT'].includes(codeOf(error)) ? new RelayError('storage-full', undefined, { cause: error }) : error
    }
  }

  /** Removes a file early. If that fails, the sweep removes it later. */
  async remove(id: string): Promise<void> {
    const parts = parseFileId(id)
    if (parts) await rm(join(this.directory, parts.folder), { recursive: true, force: true }).catch(() => undefined)
  }

  /**
   * Finds an uploaded file. Call {@link hold} first, so that no sweep removes the file in between.
   *
   * @throws RelayError `file-not-found` for anything but a regular file inside the upload directory, and for symbolic links
   */
  async resolve(id: string): Promise<StoredFile> {
    const parts = parseFileId(id)
    if (!parts) throw new RelayError('file-not-found')
    const path = join(this.directory, id)
    try {
      const stats = await realpath(path) === join(await realpath(this.directory), id) ? await stat(path) : undefined
      if (!stats?.isFile()) throw new Error('this is no file, or a link is on the way')
      return { id, path, name: parts.name, size: stats.size }
    } catch (cause) {
      throw new RelayError('file-not-found', undefined, { cause })
    }
  }

  /** Keeps sweeps from removing a file in use. Returns a function that ends the hold; further calls do nothing. */
  hold(id: string): () => void {
    const hold = { id }
    this.#holds.add(hold)
    return () => void this.#holds.delete(hold)
  }

  /** Holds a file during an action. @throws RelayError `file-not-found`, as {@link resolve} */
  async use<T>(id: string, work: (file: StoredFile) => Promise<T>): Promise<T> {
    const release = this.hold(id)
    try {
      return await work(await this.resolve(id))
    } finally {
      release()
    }
  }

  /** SHA-256 of the content of a file, in hexadecimal; `undefined` when the file cannot be read. */
  hash(id: string): Promise<string | undefined> {
    return this.use(id, async ({ path }) => {
      const hash = createHash('sha256')
      await pipeline(createReadStream(path), hash)
      return hash.digest('hex')
    }).catch(() => undefined)
  }

  /**
   * Keeps a file from expiring before a time in milliseconds since the epoch. This moves its modification time, so it outlasts a restart;
   * the file is flushed, so that it outlasts a power cut as well.
   *
   * @throws RelayError `file-not-found`, as {@link resolve}
   */
  keepUntil(id: string, until: number): Promise<void> {
    return this.use(id, async ({ path }) => {
      const file = await open(path, 'r+')
      try {
        const { mtimeMs } = await file.stat()
        const modified = new Date(Math.max(mtimeMs, until - retention))
        await file.utimes(modified, modified)
        await file.sync()
      } finally {
        await file.close()
      }
      for (const folder of [dirname(path), this.directory]) await syncFolder(folder)
    })
  }

  /**
   * Removes expired files and the remains of crashed uploads. It touches only `<uuid v4>/` folders and the plugin's own temporary files,
   * and follows no links. It works on one file at a time, so that a sweep of 100,000 files delays nothing else.
   *
   * @param now in milliseconds since the epoch
   * @param signal stops the sweep early
   */
  async sweep(now: number, signal?: AbortSignal): Promise<SweepResult> {
    const { directory } = this
    const result: SweepResult = { removed: 0, errors: [] }
    /** Goes on after a failure. A file that is gone, or a folder that is in use, is none. */
    const attempt = (step: Promise<unknown>): Promise<unknown> => step.catch((error: unknown) => {
      if (!['ENOENT', 'ENOTEMPTY'].includes(codeOf(error))) result.errors.push(error)
    })
    const isOlder = async (path: string, age: number): Promise<boolean> => now - (await lstat(join(directory, path))).mtimeMs > age
    const removeFile = async (id: string, age: number): Promise<void> => {
      // There is no `await` between the check for holds and the removal, so a later holder finds the file gone.
      if (!await isOlder(id, age) || [...this.#holds].some(hold => hold.id === id)) return
      await unlink(join(directory, id))
      result.removed++
    }
    const sweepFolder = async (folder: string): Promise<void> => {
      const entries = await readdir(join(directory, folder), { withFileTypes: true })
      for (const { name } of entries.filter(entry => entry.isFile())) await attempt(removeFile(`${folder}/${name}`, retention))
      // Only old folders are removed: an upload may be about to move its file into a new, empty one.
      if (entries.length > 0 || await isOlder(folder, staleAfter)) await rmdir(join(directory, folder))
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
}

/** Sweeps now and every ten minutes until the context is disposed. */
export function scheduleSweeps(ctx: Context, store: UploadStore, logger: Log): void {
  const lifetime = new AbortController()
  const run = async (): Promise<void> => {
    const { removed, errors } = await store.sweep(Date.now(), lifetime.signal)
    if (removed > 0) logger.info(say('removed-uploads', { count: removed }))
    if (errors.length > 0) logger.warn(say('cleanup-failed', { count: errors.length, error: String(errors[0]) }))
  }
  ctx.on('dispose', () => lifetime.abort())
  ctx.setInterval(() => void run(), interval)
  void run()
}
