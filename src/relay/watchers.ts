import type { DeliveryRecord } from './delivery'

/** Told how a delivery has ended, or nothing when this relay is not going to know. */
export type Watcher = (record?: DeliveryRecord) => void

/** Those who wait for the end of deliveries. */
export class Watchers {
  private readonly watchers = new Map<string, Set<Watcher>>()

  /** @param stop when it is aborted all are told nothing */
  constructor(private readonly stop: AbortSignal) {
    stop.addEventListener('abort', () => {
      for (const id of [...this.watchers.keys()]) this.tell(id)
    })
  }

  /** @returns what ends the watch */
  watch(id: string, callback: Watcher): () => void {
    const callbacks = this.watchers.get(id) ?? new Set()
    this.watchers.set(id, callbacks.add(callback))
    if (this.stop.aborted) callback()
    return () => {
      callbacks.delete(callback)
      if (callbacks.size === 0) this.watchers.delete(id)
    }
  }

  tell(id: string, record?: DeliveryRecord): void {
    for (const callback of [...this.watchers.get(id) ?? []]) callback(record)
  }
}
