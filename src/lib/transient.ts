// Collections of what comes and goes with every message. They are no Map and no Set: each table that one of those has outgrown points to
// the next one until it is collected, so that one that has become old keeps what was in all later ones, whole requests among it.

/**
 * Removes an entry from a list that is in no order.
 *
 * @returns whether it was there
 */
export function removeFrom<T>(list: T[], entry: T): boolean {
  const place = list.indexOf(entry)
  if (place < 0) return false
  const last = list.pop()
  if (last !== undefined && place < list.length) list[place] = last
  return true
}

/** Entries by names that were made here, such as IDs, in the order in which they came. */
export class Registry<V> {
  private readonly entries: Partial<Record<string, V>> = {}
  private count = 0

  get size(): number {
    return this.count
  }

  get(name: string): V | undefined {
    return Object.hasOwn(this.entries, name) ? this.entries[name] : undefined
  }

  set(name: string, value: V): void {
    if (!Object.hasOwn(this.entries, name)) this.count++
    this.entries[name] = value
  }

  /** @returns whether it was there */
  delete(name: string): boolean {
    if (!Object.hasOwn(this.entries, name)) return false
    this.count--
    return Reflect.deleteProperty(this.entries, name)
  }

  names(): string[] {
    return Object.keys(this.entries)
  }

  values(): V[] {
    return this.names().flatMap(name => this.entries[name] ?? [])
  }
}
