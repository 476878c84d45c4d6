/** Lets what concerns the same thing happen one after the other. */
export class Mutex {
  private readonly tails = new Map<string, Promise<unknown>>()

  /** Does the work once all earlier work with this key is done. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.tails.get(key)
    // What failed before is for its own caller to hear.
    const mine = before ? before.then(work, work) : work()
    this.tails.set(key, mine)
    try {
      return await mine
    } finally {
      if (this.tails.get(key) === mine) this.tails.delete(key)
    }
  }
}
