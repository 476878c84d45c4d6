import type { UploadStore } from './store'

/** The files that came with a request. They are removed when it ends, unless something is to send them. */
export class RequestFiles {
  readonly #ids: string[] = []
  #isKept = false

  constructor(readonly store: UploadStore) {}

  /** Takes files that were stored for the request. */
  add(ids: readonly string[]): void {
    this.#ids.push(...ids)
  }

  /** From now on the files stay as long as any upload. */
  keep(): void {
    this.#isKept = true
  }

  /** To be called once the request is answered. */
  async end(): Promise<void> {
    if (this.#isKept) return
    for (const id of this.#ids) await this.store.remove(id)
  }
}
