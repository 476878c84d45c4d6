import type { Writable } from 'node:stream'

/** The streams that are gathered in this turn of the event loop, what is to be done at its end, and who waits for that. */
let streams: Writable[] = []
let last: (() => void)[] = []
let waiting: (() => void)[] = []
let isScheduled = false

/**
 * Lets what is written to a stream in one turn of the event loop leave together: each write is a call to the system, and one to
 * a pipe or a file holds up the whole process. To be called before something is written.
 */
export function gather(stream: Writable): void {
  if (streams.includes(stream)) return
  streams.push(stream)
  stream.cork()
  schedule()
}

/**
 * Does something at the end of this turn of the event loop, when what was gathered has left.
 *
 * @param work must not throw; the same is done once, however often it is asked for
 */
export function atTurnEnd(work: () => void): void {
  if (last.includes(work)) return
  last.push(work)
  schedule()
}

/** Resolves at the end of this turn of the event loop, when all that is left to it is done. */
export function turnEnd(): Promise<void> {
  schedule()
  return new Promise(resolve => waiting.push(resolve))
}

function schedule(): void {
  if (isScheduled) return
  isScheduled = true
  process.once('exit', release)
  setImmediate(release)
}

function release(): void {
  if (!isScheduled) return
  isScheduled = false
  process.off('exit', release)
  const [gathered, works, waiters] = [streams, last, waiting]
  streams = []
  last = []
  waiting = []
  for (const stream of gathered) uncork(stream)
  try {
    for (const work of works) work()
  } finally {
    for (const resolve of waiters) resolve()
  }
}

function uncork(stream: Writable): void {
  try {
    stream.uncork()
  } catch (error) {
    // None of the others is to stay corked because of it.
    stream.destroy(error instanceof Error ? error : undefined)
  }
}
