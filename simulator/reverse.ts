import { WebSocket } from 'ws'
import type { Role } from './connections'
import type { Settings } from './options'

/** How long a server may take to answer the handshake before it is dialled again, in milliseconds. */
const longestHandshake = 5_000

/** Dials the bot's reverse-WebSocket server, and redials after every loss while it runs. */
export class ReverseDialer {
  private socket: WebSocket | null = null
  private timer: NodeJS.Timeout | null = null
  private running = false

  constructor(
    private readonly reverse: NonNullable<Settings['reverse']>,
    private readonly selfId: string,
    private readonly maxPayload: number,
    private readonly bots: { isOffline(): boolean, onSocket(socket: WebSocket, role: Role): void },
  ) {}

  start(): void {
    if (this.running) return
    this.running = true
    this.dial()
  }

  stop(): void {
    this.running = false
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
    this.socket?.terminate()
  }

  private dial(): void {
    if (this.bots.isOffline()) {
      this.dialLater()
      return
    }
    const { url, token } = this.reverse
    const socket = new WebSocket(url, {
      perMessageDeflate: false,
      maxPayload: this.maxPayload,
      handshakeTimeout: longestHandshake,
      headers: {
        'X-Self-ID': this.selfId,
        'X-Client-Role': 'Universal',
        'User-Agent': 'OneBot/11',
        ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
      },
    })
    this.socket = socket
    // If the connection is refused, reset or answered with something else, `close` follows.
    socket.on('error', () => undefined)
    socket.on('open', () => {
      // The simulator may have been switched offline during the handshake.
      if (this.bots.isOffline()) socket.terminate()
      else this.bots.onSocket(socket, 'both')
    })
    socket.on('close', () => {
      if (this.running && this.socket === socket) this.dialLater()
    })
  }

  private dialLater(): void {
    this.timer = setTimeout(() => {
      this.dial()
    }, this.reverse.redialInterval)
  }
}
