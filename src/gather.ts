import type { Writable } from 'node:stream'

/** The streams of which this turn of the event loop is gathered. */
const gathered = [] as Writable[]

/**
 * Lets what is written to a stream in one turn of the event loop leave together: each write is a call to the system, and one to
 * a pipe or a file holds up the whole process. To be called before something is written.
 */
export function gather(stream: Writable): void {
  if (gathered.includes(stream)) return
  if (gathered.length === 0) {
    process.once('exit', release)
    setImmediate(release)
  }
  gathered.push(stream)
  stream.cork()
}

function release(): void {
  process.off('exit', release)
  for (const stream of gathered) stream.uncork()
  gathered.length = 0
}
