import { Writable } from 'node:stream'

const corked = new WeakSet<Writable>()

/** Lets what is written to a stream in one turn of the event loop leave in one system call: under load, most of a send is such calls. */
export function corkForTurn(stream: unknown): void {
  if (!(stream instanceof Writable) || corked.has(stream)) return
  corked.add(stream)
  stream.cork()
  setImmediate(() => {
    corked.delete(stream)
    stream.uncork()
  })
}
