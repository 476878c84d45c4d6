import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, STATUS_CODES, type IncomingMessage, type Server as HttpServer, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer, type WebSocket } from 'ws'
import { failed } from './answers'
import type { Role } from './connections'
import { refusal } from './guards'
import type { Profile } from './profiles'

/** What a connection carries, by its path (OneBot 11, "WebSocket"). */
const roles: ReadonlyMap<string, Role> = new Map([['', 'both'], ['/onebot/v11/ws', 'both'], ['/api', 'calls'], ['/event', 'events']])
const host = '127.0.0.1'

/** The configuration and handlers of the server. */
export interface ServerSetup {
  profile: Profile
  token: string | null
  /** Whether bots are refused. The page is still served. */
  isOffline(): boolean
  onSocket(socket: WebSocket, role: Role): void
  onRequest(request: IncomingMessage, response: ServerResponse): void
}

/** The listening side: one port on 127.0.0.1 for the bots' WebSockets and the page. */
export class Server {
  private readonly http: HttpServer
  private readonly webSockets: WebSocketServer

  constructor(private readonly setup: ServerSetup) {
    this.webSockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: setup.profile.maxFrame })
    this.http = createServer((request, response) => {
      setup.onRequest(request, response)
    })
    this.http.on('upgrade', (request, socket, head) => {
      this.upgrade(request, socket, head)
    })
  }

  /** Starts to listen; resolves to the port. Rejects if the port is in use. */
  listen(port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.http.once('error', reject)
      this.http.listen(port, host, () => {
        this.http.off('error', reject)
        const address = this.http.address()
        resolve(typeof address === 'object' && address !== null ? address.port : port)
      })
    })
  }

  /** Stops listening and closes every connection. */
  async stop(): Promise<void> {
    const closed = new Promise<void>(resolve => {
      // An error means that the server was not listening.
      this.http.close(() => {
        resolve()
      })
    })
    for (const socket of this.webSockets.clients) socket.terminate()
    this.http.closeAllConnections()
    await closed
  }

  private upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // Handles a reset before the WebSocket layer takes over.
    socket.on('error', () => undefined)
    const { profile, token } = this.setup
    const address = `http://${host}${request.url ?? '/'}`
    const url = URL.canParse(address) ? new URL(address) : null
    const problem = refusal(request)
    if (problem !== null) {
      refuse(socket, 403, problem)
      return
    }
    const role = url === null ? undefined : roles.get(url.pathname.replace(/\/$/, ''))
    if (url === null || role === undefined) {
      refuse(socket, 404, 'the WebSocket is served at /, calls alone at /api, events alone at /event')
      return
    }
    if (this.setup.isOffline()) {
      refuse(socket, 503, 'the platform is offline: the switch is on the page')
      return
    }
    const permitted = token === null || isToken(token, url, request)
    if (!permitted && profile.tokenRefusal === 'http') {
      refuse(socket, 401, 'wrong token')
      return
    }
    this.webSockets.handleUpgrade(request, socket, head, webSocket => {
      if (permitted) {
        this.setup.onSocket(webSocket, role)
        return
      }
      webSocket.on('error', () => undefined)
      webSocket.send(JSON.stringify(failed(profile, { retcode: 1403, wording: 'token验证失败' }, null)))
      webSocket.close()
    })
  }
}

function isToken(token: string, url: URL, request: IncomingMessage): boolean {
  const header = /^Bearer (.*)$/.exec(request.headers.authorization ?? '')?.[1] ?? ''
  const query = url.searchParams.get('access_token') ?? ''
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  // The query takes precedence over the header, as in NapCat.
  return timingSafeEqual(digest(query === '' ? header : query), digest(token))
}

function refuse(socket: Duplex, status: number, text: string): void {
  const body = `${text}\n`
  // Node.js leaves a connection half open until the other side also ends it, and until then the server could not stop.
  socket.once('finish', () => socket.destroy())
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n`
    + `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}
