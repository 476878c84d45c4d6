import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, realpath, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { RelayError } from '../errors'
import { Limiter } from '../lib/limiter'
import { parseFileId } from './names'
import { retention, sweep, type SweepResult } from './sweep'
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

/** The upload directory: `<uuid v4>/<name>` for each file. Others may keep things of their own in it. */
export class UploadStore {
  readonly #holds = new Map<string, number>()
  /** Those that parse uploads share one core. */
  readonly parsing = new Limiter({ concurrency: 4 })

  /**
   * @param directory absolute; created with the first upload, and may be a symbolic link
   * @param onReceived told of each request that has brought files: how many, and of how many bytes together
   */
  constructor(private readonly directory: string, readonly onReceived: (files: number, bytes: number) => void = () => undefined) {}

  /**
   * Stores the files that `fill` opens: all of them, or none when it fails.
   *
   * @param signal ends it early, with its reason
   * @returns file IDs in the order of `open`
   * @throws RelayError `storage-full`; the error of `fill`, and other errors of the file system
   */
  async write(fill: (upload: Upload) => Promise<void> | void, signal?: AbortSignal): Promise<string[]> {
    const upload = new Upload(this.directory)
    try {
      await mkdir(this.directory, { recursive: true })
      await fill(upload)
      return await upload.commit(signal)
    } catch (error) {
      await upload.discard()
      const isFull = error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')
      throw isFull ? new RelayError('storage-full', undefined, { cause: error }) : error
    }
  }

  /**
   * Stores data as a file.
   *
   * @param name made safe here
   * @returns its ID
   * @throws RelayError `storage-full`, and other errors of the file system
   */
  async saveData(data: Buffer | string, name: string): Promise<string> {
    const [id = ''] = await this.write(upload => void upload.open(name).end(data))
    return id
  }

  /** Removes a file before its time. The sweep removes what cannot be removed now. */
  async remove(id: string): Promise<void> {
    const parts = parseFileId(id)
    if (parts) await rm(join(this.directory, parts.folder), { recursive: true, force: true }).catch(() => undefined)
  }

  /**
   * Finds an uploaded file. Call {@link hold} first, so that no sweep removes it in between.
   *
   * @throws RelayError `file-not-found` unless it is a regular file inside the upload directory, with no link on the way
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

  /** SHA-256 of the content of a file, in hexadecimal; `undefined` when the file cannot be read. */
  async digest(id: string): Promise<string | undefined> {
    const release = this.hold(id)
    try {
      const { path } = await this.resolve(id)
      const hash = createHash('sha256')
      await pipeline(createReadStream(path), hash)
      return hash.digest('hex')
    } catch {
      return undefined
    } finally {
      release()
    }
  }

  /** Keeps a sweep from removing a file while something uses it. Returns what ends the hold; further calls of that do nothing. */
  hold(id: string): () => void {
    this.#holds.set(id, (this.#holds.get(id) ?? 0) + 1)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      const left = (this.#holds.get(id) ?? 0) - 1
      if (left > 0) this.#holds.set(id, left)
      else this.#holds.delete(id)
    }
  }

  /**
   * Keeps a file from expiring before a point in time, also through a restart: its modification time is moved.
   *
   * @param until in milliseconds since the epoch
   * @throws RelayError `file-not-found`, as {@link resolve}
   */
  async keepUntil(id: string, until: number): Promise<void> {
    const release = this.hold(id)
    try {
      const { path } = await this.resolve(id)
      const { mtimeMs } = await stat(path)
      const modified = new Date(Math.max(mtimeMs, until - retention))
      await utimes(path, modified, modified)
    } finally {
      release()
    }
  }

  /**
   * Removes files past their time and what crashed uploads left.
   *
   * @param now in milliseconds since the epoch
   * @param signal ends the sweep early
   */
  sweep(now: number, signal?: AbortSignal): Promise<SweepResult> {
    return sweep(this.directory, now, id => this.#holds.has(id), signal)
  }
}
