import { socketState, type LinkSocket } from './link'

/** After how many silent intervals in a row the other side is taken for gone. */
const patience = 3

/** What is needed beyond a LinkSocket: the methods of the library `ws`, which answers pings by itself. */
interface PingSocket extends LinkSocket {
  readonly bufferedAmount: number
  ping(): void
  terminate(): void
  on(event: string, listener: () => void): void
  off(event: string, listener: () => void): void
}

/**
 * Cuts a connection whose other side vanished without a word, as when its machine loses power: TCP alone needs a quarter of
 * an hour to notice. A side that has never answered a ping is let be, and so is one to which a message is on its way.
 *
 * @param interval between two pings, in milliseconds
 * @returns what ends the watch
 */
export function watchPulse(socket: LinkSocket, interval: number): () => void {
  if (!isPingSocket(socket)) return () => undefined
  let silence = 0
  let answers = false
  const onMessage = (): void => {
    silence = 0
  }
  const onPong = (): void => {
    silence = 0
    answers = true
  }
  const timer = setInterval(() => {
    if (socket.readyState !== socketState.open) return
    // A large message counts in full until its last byte has left, and a slow one is no reason to cut it.
    if (socket.bufferedAmount > 0) silence = 0
    if (silence >= patience && answers) socket.terminate()
    else socket.ping()
    silence++
  }, interval)
  socket.on('message', onMessage)
  socket.on('pong', onPong)
  return () => {
    clearInterval(timer)
    socket.off('message', onMessage)
    socket.off('pong', onPong)
  }
}

function isPingSocket(socket: LinkSocket): socket is PingSocket {
  return typeof Reflect.get(socket, 'bufferedAmount') === 'number'
    && ['ping', 'terminate', 'on', 'off'].every(name => typeof Reflect.get(socket, name) === 'function')
}
