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
 * an hour to notice. A side that has never answered a ping is let be, and so is one that still takes in what was sent to it.
 *
 * @param interval between two pings, in milliseconds
 * @returns what ends the watch
 */
export function watchPulse(socket: LinkSocket, interval: number): () => void {
  if (!isPingSocket(socket)) return () => undefined
  let silence = 0
  let answers = false
  let backlog = 0
  const onMessage = (): void => {
    silence = 0
  }
  const onPong = (): void => {
    silence = 0
    answers = true
  }
  const timer = setInterval(() => {
    if (socket.readyState !== socketState.open) return
    const { bufferedAmount } = socket
    if (bufferedAmount < backlog) silence = 0
    backlog = bufferedAmount
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
