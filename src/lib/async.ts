import { EventEmitter, once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { RelayError } from '../errors'

const callbacks = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls back when a signal is aborted; not where it is already. Every message under way watches the signal of the stop, so they share one
 * listener: V8 links the listeners of a signal to one another, and one that was removed keeps those that were added after it.
 *
 * @param callback must not throw
 * @returns ends the watch
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

/** The result of some work; `undefined` where it fails or takes longer than a time in milliseconds. */
export async function inTime<T>(work: () => Promise<T>, time: number): Promise<T | undefined> {
  const end = new AbortController()
  const late = setTimeout(time, undefined, { signal: end.signal })
  return Promise.race([work(), late]).catch(() => undefined).finally(() => end.abort())
}

/** Runs work with the same key one after the other. */
export class Mutex {
  private readonly tails = new Map<string, Promise<unknown>>()

  /** Does the work once all earlier work with this key has ended, well or not. */
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

/** The work in flight, so that a stop can wait for it. */
export class InFlight {
  private readonly events = new EventEmitter()
  private readonly tasks = new Set<() => void>()
  private isClosed = false

  /** Begins a task. @returns ends it; `undefined` once this is drained */
  tryToEnter(): (() => void) | undefined {
    if (this.isClosed) return
    const leave = (): void => {
      if (this.tasks.delete(leave) && this.tasks.size === 0) this.events.emit('idle')
    }
    this.tasks.add(leave)
    return leave
  }

  /** The same. @throws RelayError `stopping` */
  enter(): () => void {
    const leave = this.tryToEnter()
    if (leave) return leave
    throw new RelayError('stopping')
  }

  /** Lets nothing new begin, and waits until nothing is in flight, at most for a time in milliseconds. */
  async drain(time: number): Promise<void> {
    this.isClosed = true
    if (this.tasks.size > 0) await inTime(() => once(this.events, 'idle'), time)
  }
}
