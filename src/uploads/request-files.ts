import type { UploadStore } from './store'

/** The files that came with a request or were made for it: they are there as long as it needs them, and stay only where that is said. */
export class RequestFiles {
  readonly #ids: string[] = []
  #isKept = false

  constructor(readonly store: UploadStore) {}

  /** Takes files that were stored for the request. */
  add(ids: readonly string[]): void {
    this.#ids.push(...ids)
  }

  /**
   * Stores a text as a file.
   *
   * @returns its ID
   */
  async write(name: string, text: string): Promise<string> {
    const id = await this.store.write(name, Buffer.from(text))
    this.add([id])
    return id
  }

  /** From now on they stay as long as any upload, because something is to send them, be it later. */
  keep(): void {
    this.#isKept = true
  }

  /** To be called once the request is answered: removes what nobody needs. */
  async end(): Promise<void> {
    if (this.#isKept) return
    for (const id of this.#ids) await this.store.remove(id)
  }
}
