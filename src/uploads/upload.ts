import { once, type EventEmitter } from 'node:events'
import { createWriteStream, type WriteStream } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { v4 } from 'uuid'
import { RelayError } from '../errors'
import { safeName } from '../lib/file-name'
import { isAllowed, temporaryName } from './names'

/** What each file of an upload may be. */
export interface FileLimits {
  /** In bytes, for each file. */
  maxFileSize: number
  /** As `parseExtensions` gives them: empty allows all. */
  allowedExtensions: readonly string[]
}

/** The files of one request: all of them are stored or none. The last call is either `commit` or `discard`. */
export class Upload {
  /** Bytes of all files together, so far. */
  size = 0
  readonly #files: { id: string, temporary: string, folder: string }[] = []
  #stream: WriteStream | undefined

  /** @param directory upload directory, absolute; created with the first file */
  constructor(private readonly directory: string) {}

  /**
   * Begins a file under a temporary name, once the file before is closed: a request never has more than one open.
   *
   * @param given its name as the client wrote it
   * @param content emits `data` with its bytes; when there are too many, the stream fails with the RelayError `too-large`
   * @throws RelayError `unsupported-type` for a file that is not accepted
   */
  async open(given: string, content?: EventEmitter, { maxFileSize, allowedExtensions }: FileLimits = anyFile): Promise<WriteStream> {
    const name = safeName(given)
    if (!isAllowed(name, allowedExtensions)) {
      throw new RelayError('unsupported-type', `files of this kind are not accepted, only: ${allowedExtensions.join(', ')}`)
    }
    await this.close()
    await mkdir(this.directory, { recursive: true })
    const uuid = v4()
    const temporary = join(this.directory, temporaryName(uuid))
    this.#files.push({ id: `${uuid}/${name}`, temporary, folder: join(this.directory, uuid) })
    // `close` reads its errors.
    const stream = createWriteStream(temporary, { flags: 'wx' }).on('error', () => undefined)
    let size = 0
    content?.on('data', (bytes: Buffer) => {
      size += bytes.length
      this.size += bytes.length
      if (size > maxFileSize) stream.destroy(new RelayError('too-large', `a file is larger than ${maxFileSize} bytes`))
    })
    this.#stream = stream
    return stream
  }

  /**
   * Moves the files to where their IDs say. Their streams must have been ended.
   *
   * @param signal checked around each step, so that a client which has gone leaves nothing behind
   * @returns file IDs in the order of `open`
   */
  async commit(signal?: AbortSignal): Promise<string[]> {
    await this.close()
    for (const { id, temporary, folder } of this.#files) {
      signal?.throwIfAborted()
      await mkdir(folder)
      await rename(temporary, join(this.directory, id))
    }
    signal?.throwIfAborted()
    return this.#files.map(({ id }) => id)
  }

  /** Removes the files of this request. The sweep removes what cannot be removed now. */
  async discard(): Promise<void> {
    this.#stream?.destroy()
    await this.close().catch(() => undefined)
    for (const path of this.#files.flatMap(({ temporary, folder }) => [temporary, folder])) {
      await rm(path, { recursive: true, force: true }).catch(() => undefined)
    }
  }

  /** Waits until the last file is written and closed. */
  async close(): Promise<void> {
    if (!this.#stream) return
    if (!this.#stream.closed && !this.#stream.errored) await once(this.#stream, 'close')
    if (this.#stream.errored) throw this.#stream.errored
  }
}

/** For files that the relay makes. */
const anyFile: FileLimits = { maxFileSize: Infinity, allowedExtensions: [] }
