import { LRUCache } from 'lru-cache'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { realpath, rmdir, stat, unlink, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { RelayError } from '../errors'
import { parseFileId } from './names'
import { defaultRetention, sweep, type SweepOptions, type SweepResult } from './sweep'
import { Upload } from './upload'

/** An uploaded file, as a send needs it. */
export interface StoredFile {
  id: string
  /** Absolute, below the upload directory as that was configured. */
  path: string
  name: string
  /** In bytes. */
  size: number
}

/** How much of a file is read, and held in memory, at a time, in bytes. */
const pieceSize = 256 * 1024

/** The upload directory: `<uuid v4>/<name>` for each file. Others may keep things of their own in it. */
export class UploadStore {
  readonly #active = new Set<string>()
  readonly #holds = new Map<string, number>()
  /** Of the contents of files, by their IDs: what is stored never changes. */
  readonly #digests = new LRUCache<string, string>({ max: 1_000 })
  #sweep: Promise<SweepResult> | undefined

  /**
   * @param directory absolute; created with the first upload, and may be a symbolic link
   * @param onReceived told of each request that has brought files: how many, and of how many bytes together
   */
  constructor(private readonly directory: string, readonly onReceived: (files: number, bytes: number) => void = () => undefined) {}

  /** Begins to store the files of one request. */
  begin(): Upload {
    return new Upload(this.directory, this.#active)
  }

  /**
   * Stores one file that was made here.
   *
   * @param name a safe one
   * @returns its ID
   */
  async write(name: string, bytes: Buffer): Promise<string> {
    const upload = this.begin()
    const { signal } = new AbortController()
    try {
      upload.begin(name)
      upload.write(bytes)
      upload.end()
      await upload.flush(signal)
      const [id = ''] = await upload.commit(signal)
      return id
    } catch (error) {
      await upload.discard()
      throw error
    }
  }

  /** Removes a file before its time. What cannot be removed is left for the sweep. */
  async remove(id: string): Promise<void> {
    const parts = parseFileId(id)
    if (!parts) return
    const folder = join(this.directory, parts.folder)
    await unlink(join(folder, parts.name)).catch(() => undefined)
    await rmdir(folder).catch(() => undefined)
  }

  /**
   * Finds an uploaded file. Call {@link hold} first, so that no sweep removes it in between.
   *
   * @throws RelayError `file-not-found` unless it is a regular file inside the upload directory, with no link on the way
   */
  async resolve(id: string): Promise<StoredFile> {
    const parts = parseFileId(id)
    if (!parts) throw new RelayError('file-not-found')
    const path = join(this.directory, parts.folder, parts.name)
    const size = await this.#sizeOf(path, parts).catch((cause: unknown) => {
      throw new RelayError('file-not-found', undefined, { cause })
    })
    if (size === undefined) throw new RelayError('file-not-found')
    return { id, path, name: parts.name, size }
  }

  /**
   * SHA-256 of the content of a file, in hexadecimal. It is read piece by piece, so that nothing else has to wait.
   *
   * @returns `undefined` when it cannot be read, be it because it has been removed
   */
  async digest(id: string): Promise<string | undefined> {
    const known = this.#digests.get(id)
    if (known !== undefined) return known
    const release = this.hold(id)
    try {
      const { path } = await this.resolve(id)
      const hash = createHash('sha256')
      const pieces: AsyncIterable<Buffer> = createReadStream(path, { highWaterMark: pieceSize })
      for await (const piece of pieces) hash.update(piece)
      const digest = hash.digest('hex')
      this.#digests.set(id, digest)
      return digest
    } catch {
      return undefined
    } finally {
      release()
    }
  }

  /**
   * Keeps a sweep from removing a file while something uses it.
   *
   * @returns ends the hold; further calls do nothing
   */
  hold(id: string): () => void {
    this.#holds.set(id, (this.#holds.get(id) ?? 0) + 1)
    let held = true
    return () => {
      if (!held) return
      held = false
      const left = (this.#holds.get(id) ?? 0) - 1
      if (left > 0) this.#holds.set(id, left)
      else this.#holds.delete(id)
    }
  }

  /**
   * Keeps a file from expiring before a point in time, also through a restart and for other processes that share the directory: its
   * modification time is moved.
   *
   * @param until in milliseconds since the epoch
   * @throws RelayError `file-not-found`, as {@link resolve}
   */
  async keepUntil(id: string, until: number): Promise<void> {
    const release = this.hold(id)
    try {
      const { path } = await this.resolve(id)
      const { mtimeMs } = await stat(path)
      const modified = new Date(Math.max(mtimeMs, until - defaultRetention))
      await utimes(path, modified, modified)
    } finally {
      release()
    }
  }

  /**
   * Removes files past their time and what crashed uploads left. A call during a sweep joins that sweep, whatever its
   * arguments.
   *
   * @param now in milliseconds since the epoch
   */
  sweep(now: number, options: SweepOptions = {}): Promise<SweepResult> {
    this.#sweep ??= sweep(this.directory, now, options, {
      isActive: uuid => this.#active.has(uuid),
      isHeld: id => this.#holds.has(id),
    }).finally(() => {
      this.#sweep = undefined
    })
    return this.#sweep
  }

  /** @returns `undefined` when it is no regular file, or is reached through a link */
  async #sizeOf(path: string, { folder, name }: { folder: string, name: string }): Promise<number | undefined> {
    const root = await realpath(this.directory)
    if (await realpath(path) !== join(root, folder, name)) return undefined
    const stats = await stat(path)
    return stats.isFile() ? stats.size : undefined
  }
}
