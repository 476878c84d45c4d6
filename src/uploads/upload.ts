import { mkdir, open, rename, rmdir, unlink, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { v4 } from 'uuid'
import { temporaryName } from './names'

interface UploadedFile {
  uuid: string
  name: string
  /** What of it is on disk. */
  stage: 'nothing' | 'temporary' | 'folder' | 'stored'
}

type Step = { kind: 'begin', file: UploadedFile } | { kind: 'write', bytes: Buffer } | { kind: 'end' }

/**
 * The files of one request: all of them are stored or none. `begin`, `write` and `end` return at once and only queue what is to be
 * written; `flush` writes it to the disk. The last call is either `commit` or `discard`.
 */
export class Upload {
  readonly #files: UploadedFile[] = []
  #steps: Step[] = []
  #backlog = 0
  #size = 0
  #handle: FileHandle | undefined

  /**
   * @param directory upload directory, absolute; created when the first file needs it
   * @param active UUIDs that the sweep leaves alone
   */
  constructor(private readonly directory: string, private readonly active: Set<string>) {}

  get count(): number {
    return this.#files.length
  }

  /** Bytes of all files together, so far. */
  get size(): number {
    return this.#size
  }

  /** Bytes that wait for `flush`. */
  get backlog(): number {
    return this.#backlog
  }

  get hasWork(): boolean {
    return this.#steps.length > 0
  }

  /** Begins the next file; the one before must have ended. */
  begin(name: string): void {
    const file: UploadedFile = { uuid: v4(), name, stage: 'nothing' }
    this.#files.push(file)
    this.active.add(file.uuid)
    this.#steps.push({ kind: 'begin', file })
  }

  /** The bytes must not change before they are flushed. */
  write(bytes: Buffer): void {
    this.#steps.push({ kind: 'write', bytes })
    this.#backlog += bytes.length
    this.#size += bytes.length
  }

  end(): void {
    this.#steps.push({ kind: 'end' })
  }

  /**
   * Writes what is queued. One call at a time, also against `commit` and `discard`.
   *
   * @throws the reason of the signal once that is aborted, or an error of the file system
   */
  async flush(signal: AbortSignal): Promise<void> {
    const steps = this.#steps
    this.#steps = []
    this.#backlog = 0
    for (const step of steps) {
      signal.throwIfAborted()
      // One after the other, so that a request never has more than one file open.
      if (step.kind === 'begin') await this.#create(step.file)
      else if (step.kind === 'end') await this.#close()
      // Unlike `write`, goes on after a short write.
      else await this.#handle?.writeFile(step.bytes)
    }
  }

  /**
   * Gives the files their names.
   *
   * @param signal checked around each step, so that a client which has gone leaves nothing behind
   * @returns file IDs in their order
   */
  async commit(signal: AbortSignal): Promise<string[]> {
    for (const file of this.#files) {
      signal.throwIfAborted()
      const folder = join(this.directory, file.uuid)
      await mkdir(folder)
      file.stage = 'folder'
      signal.throwIfAborted()
      await rename(this.#temporary(file), join(folder, file.name))
      file.stage = 'stored'
    }
    signal.throwIfAborted()
    this.#release()
    return this.#files.map(file => `${file.uuid}/${file.name}`)
  }

  /** Removes whatever of this request is on disk. What cannot be removed is left for the sweep. */
  async discard(): Promise<void> {
    this.#steps = []
    await this.#close().catch(() => undefined)
    for (const file of this.#files) {
      const folder = join(this.directory, file.uuid)
      if (file.stage === 'temporary' || file.stage === 'folder') await unlink(this.#temporary(file)).catch(() => undefined)
      if (file.stage === 'stored') await unlink(join(folder, file.name)).catch(() => undefined)
      if (file.stage === 'stored' || file.stage === 'folder') await rmdir(folder).catch(() => undefined)
    }
    this.#release()
  }

  async #create(file: UploadedFile): Promise<void> {
    const path = this.#temporary(file)
    this.#handle = await open(path, 'wx').catch(async () => {
      // The first upload finds no directory. Whatever else may be wrong fails again here.
      await mkdir(this.directory, { recursive: true })
      return open(path, 'wx')
    })
    file.stage = 'temporary'
  }

  async #close(): Promise<void> {
    const handle = this.#handle
    this.#handle = undefined
    await handle?.close()
  }

  #temporary(file: UploadedFile): string {
    return join(this.directory, temporaryName(file.uuid))
  }

  #release(): void {
    for (const file of this.#files) this.active.delete(file.uuid)
  }
}
