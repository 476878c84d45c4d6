import type { ServerResponse } from 'node:http'
import { removeFrom } from './transient'

/** Who is told of a signal, in no order. */
const listeners = new WeakMap<AbortSignal, (() => void)[]>()

/**
 * Calls back when a signal is aborted; not where it is already. For signals to which every message listens while it is under way: the
 * listeners that a signal has by itself are linked to one another, and go on pointing to those that came later after they were removed, so
 * that one the garbage collector has yet to find keeps all of them, and the messages behind them.
 *
 * @param callback must not throw
 * @returns what ends that
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const all = listeners.get(signal) ?? listen(signal)
  all.push(callback)
  return () => {
    removeFrom(all, callback)
  }
}

function listen(signal: AbortSignal): (() => void)[] {
  const all: (() => void)[] = []
  listeners.set(signal, all)
  signal.addEventListener('abort', () => {
    // One that is called back may end the watch of another.
    for (let next = all.pop(); next; next = all.pop()) next()
  }, { once: true })
  return all
}

/** A signal that is aborted when a client goes away before its answer. */
export function goneSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  response.once('close', () => {
    if (!response.writableEnded) controller.abort()
  })
  return controller.signal
}
