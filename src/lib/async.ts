import { EventEmitter, once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { RelayError } from '../errors'

const callbacks = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls back when a signal is aborted, but not if it already is. All callbacks of a signal share one listener, because every message in
 * flight watches the stop: V8 links the listeners of a signal, and a removed one keeps those that were added after it in memory.
 *
 * @param callback must not throw
 * @returns a function that ends the watch
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const all = callbacks.get(signal) ?? new Set()
  if (!callbacks.has(signal)) {
    callbacks.set(signal, all)
    signal.addEventListener('abort', () => all.forEach(each => each()), { once: true })
  }
  all.add(callback)
  return () => void all.delete(callback)
}

/** The result of some work; `undefined` if it fails or takes longer than `time`, in milliseconds. */
export async function within<T>(work: () => Promise<T>, time: number): Promise<T | undefined> {
  const end = new AbortController()
  const late = setTimeout(time, undefined, { signal: end.signal })
  return Promise.race([work(), late]).catch(() => undefined).finally(() => end.abort())
}

/** Runs work with the same key one after the other. */
export class Mutex {
  private readonly tails = new Map<string, Promise<unknown>>()

  /** Runs the work once all earlier work with this key has ended or failed. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.tails.get(key)
    const mine = before ? before.then(work, work) : work()
    this.tails.set(key, mine)
    try {
      return await mine
    } finally {
      if (this.tails.get(key) === mine) this.tails.delete(key)
    }
  }
}

/** Counts the work in flight, so that a stop can wait for it. */
export class InFlight {
  private readonly events = new EventEmitter()
  private readonly tasks = new Set<() => void>()
  private isClosed = false

  /** Begins a task. @returns a function that ends it; `undefined` once draining has begun */
  tryToEnter(): (() => void) | undefined {
    if (this.isClosed) return
    const leave = (): void => {
      if (this.tasks.delete(leave) && this.tasks.size === 0) this.events.emit('idle')
    }
    this.tasks.add(leave)
    return leave
  }

  /** Begins a task. @returns a function that ends it. @throws RelayError `stopping` once draining has begun */
  enter(): () => void {
    const leave = this.tryToEnter()
    if (leave) return leave
    throw new RelayError('stopping')
  }

  /** Refuses new tasks, and waits until none is in flight, at most for `time`, in milliseconds. */
  async drain(time: number): Promise<void> {
    this.isClosed = true
    if (this.tasks.size > 0) await within(() => once(this.events, 'idle'), time)
  }
}
