import { RelayError } from '../errors'
import { safeName } from '../lib/file-name'
import { isAllowed } from './names'
import type { Upload } from './upload'

/** What each file of an upload may be. */
export interface FileLimits {
  /** In bytes, for each file. */
  maxFileSize: number
  /** As `parseExtensions` gives them: empty allows all. */
  allowedExtensions: readonly string[]
}

/** Writes files into an upload, one after the other, and sees to it that each is one that is taken. */
export class FileWriter {
  #size = 0

  constructor(private readonly upload: Upload, private readonly limits: FileLimits) {}

  /** How many files were begun. */
  get count(): number {
    return this.upload.count
  }

  /** Bytes of the file so far. */
  get size(): number {
    return this.#size
  }

  /**
   * Begins the next file; the one before must have ended.
   *
   * @param given its name as the client wrote it
   * @throws RelayError `unsupported-type` for a file that is not accepted
   */
  begin(given: string): void {
    const name = safeName(given)
    const { allowedExtensions } = this.limits
    if (!isAllowed(name, allowedExtensions)) {
      throw new RelayError('unsupported-type', `files of this kind are not accepted, only: ${allowedExtensions.join(', ')}`)
    }
    this.#size = 0
    this.upload.begin(name)
  }

  /**
   * The bytes must not change before they are flushed.
   *
   * @throws RelayError `too-large` when the file is longer than allowed
   */
  write(bytes: Buffer): void {
    const { maxFileSize } = this.limits
    this.#size += bytes.length
    if (this.#size > maxFileSize) throw new RelayError('too-large', `a file is larger than ${maxFileSize} bytes`)
    if (bytes.length > 0) this.upload.write(bytes)
  }

  end(): void {
    this.upload.end()
  }
}
