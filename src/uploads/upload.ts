import type { EventEmitter } from 'node:events'
import { createWriteStream, type WriteStream } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { v4 } from 'uuid'
import { RelayError } from '../errors'
import { say } from '../texts/text'
import { safeName } from '../lib/file-name'
import { moveFile } from '../lib/whole-file'
import { writeSize } from '../lib/words'
import { isAllowed, temporaryName } from './names'

/** The limits for each file of an upload. */
export interface FileLimits {
  /** The largest file, in bytes. */
  maxFileSize: number
  /** As returned by `parseExtensions`. An empty list allows all. */
  allowedExtensions: readonly string[]
}

/** The files of one request, stored all or none. The last call is either `commit` or `discard`. */
export class Upload {
  /** The bytes of all files up to now. */
  size = 0
  readonly #files: { id: string, temporary: string, folder: string, stream: WriteStream }[] = []

  /** @param directory the upload directory: absolute, existing */
  constructor(private readonly directory: string) {}

  /**
   * Starts a file under a temporary name.
   *
   * @param given the name as the client wrote it
   * @param content emits `data` with the bytes; if there are too many, the stream fails with the RelayError `too-large`. Without it, the
   *   file is the relay's own, and only this user can read it.
   * @throws RelayError `unsupported-type` for an extension that is not allowed
   */
  open(given: string, content?: EventEmitter, { maxFileSize = Infinity, allowedExtensions = [] }: Partial<FileLimits> = {}): WriteStream {
    const name = safeName(given)
    const refusal = isAllowed(name, allowedExtensions)
      ? undefined
      : new RelayError('unsupported-type', say('extension-refused', { allowed: allowedExtensions }))
    // A part without a name may be an empty input of a form, which is no file: it is refused once it has a byte.
    if (refusal && given !== '') throw refusal
    const uuid = v4()
    const temporary = join(this.directory, temporaryName(uuid))
    // `commit` reads its errors.
    const stream = createWriteStream(temporary, { flags: 'wx', mode: content ? 0o666 : 0o600 }).on('error', () => undefined)
    this.#files.push({ id: `${uuid}/${name}`, temporary, folder: join(this.directory, uuid), stream })
    let size = 0
    content?.on('data', (bytes: Buffer) => {
      size += bytes.length
      this.size += bytes.length
      if (refusal) stream.destroy(refusal)
      else if (size > maxFileSize) stream.destroy(new RelayError('too-large', say('upload-too-large', { size: writeSize(maxFileSize) })))
    })
    return stream
  }

  /**
   * Moves the files to the places given by their IDs, and returns these in the order of `open`. The streams must have ended.
   *
   * @param signal checked around each step, so that nothing is left of a client that disconnected
   */
  async commit(signal?: AbortSignal): Promise<string[]> {
    await this.written()
    for (const { id, temporary, folder } of this.#files) {
      signal?.throwIfAborted()
      await mkdir(folder)
      await moveFile(temporary, join(this.directory, id))
    }
    signal?.throwIfAborted()
    return this.#files.map(({ id }) => id)
  }

  /** Waits until all files are written and closed. */
  async written(): Promise<void> {
    for (const { stream } of this.#files) await finished(stream)
  }

  /** Removes the files of this request. If that fails, the sweep removes them later. */
  async discard(): Promise<void> {
    for (const { temporary, folder, stream } of this.#files) {
      await finished(stream.destroy()).catch(() => undefined)
      for (const path of [temporary, folder]) await rm(path, { recursive: true, force: true }).catch(() => undefined)
    }
  }
}
