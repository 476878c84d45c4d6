import type { ServerResponse } from 'node:http'

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

/** A signal that is aborted when the client disconnects before it has its answer. */
export function goneSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  response.once('close', () => {
    if (!response.writableEnded) controller.abort()
  })
  return controller.signal
}
