import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { WebSocketServer, type WebSocket } from 'ws'
import { fieldsOf, type JsonObject } from '../../src/lib/shape'
import { listen } from '../support/listen'

/** A request to the API of a platform. */
export interface Call {
  method: string
  /** Without the query. */
  path: string
  query: URLSearchParams
  headers: IncomingMessage['headers']
  /** The fields of the JSON or of the form. */
  fields: JsonObject
  /** The files of a form, by their fields. */
  files: ReadonlyMap<string, SentFile>
  /** When it came, on the monotonic clock. */
  at: number
}

/** A file in a form. */
export interface SentFile {
  name: string
  type: string
  data: Buffer
}

/** What a platform answers. */
export interface Answer {
  status?: number
  headers?: Record<string, string>
  /** Sent as JSON; a text as it is. */
  body?: unknown
}

/** What happens to the next calls that fit, instead of what the platform does with them. */
export interface Fault {
  /** Of the paths. */
  path: RegExp
  /** How many calls; 1 unless given. */
  times?: number
  /** Whether the platform carries the call out all the same. */
  isCarriedOut?: boolean
  /** The answer; `cut` closes the connection without one, `none` leaves it open without one. */
  answer: Answer | 'cut' | 'none'
  /** How long the answer takes, in milliseconds. */
  after?: number
}

/** The HTTP API of a platform on a free port of 127.0.0.1, with a ledger of all calls, and faults. */
export class PlatformServer {
  /** Every call, in the order of arrival. */
  readonly calls: Call[] = []
  /** The WebSockets that are connected. */
  readonly sockets = new Set<WebSocket>()
  url = ''
  private readonly faults: (Fault & { left: number })[] = []
  private readonly server = createServer((request, response) => {
    this.serve(request, response).catch(() => response.destroy())
  })

  private constructor(private readonly handle: (call: Call) => Answer | Promise<Answer>) {}

  /**
   * @param handle carries out a call, as the platform does
   * @param greet told of each WebSocket that a bot opens
   */
  static async start(handle: (call: Call) => Answer | Promise<Answer>, greet?: (socket: WebSocket) => void): Promise<PlatformServer> {
    const server = new PlatformServer(handle)
    server.url = `http://127.0.0.1:${await listen(server.server)}`
    if (greet) {
      new WebSocketServer({ server: server.server }).on('connection', socket => {
        server.sockets.add(socket)
        socket.on('close', () => server.sockets.delete(socket))
        greet(socket)
      })
    }
    return server
  }

  /** The calls whose paths fit. */
  callsTo(path: RegExp): Call[] {
    return this.calls.filter(call => path.test(call.path))
  }

  fault(fault: Fault): void {
    this.faults.push({ ...fault, left: fault.times ?? 1 })
  }

  clear(): void {
    this.calls.length = 0
    this.faults.length = 0
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.terminate()
    this.server.closeAllConnections()
    await new Promise(resolve => this.server.close(resolve))
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = await readCall(request)
    this.calls.push(call)
    const fault = this.faults.find(({ path, left }) => left > 0 && path.test(call.path))
    if (fault) fault.left--
    const done = !fault || fault.isCarriedOut ? await this.handle(call) : {}
    if (fault?.after !== undefined) await delay(fault.after)
    if (fault?.answer === 'none') return
    if (fault?.answer === 'cut') {
      response.destroy()
      return
    }
    const { status = 200, headers = {}, body } = fault?.answer ?? done
    const isText = typeof body === 'string'
    response.writeHead(status, { 'content-type': isText ? 'text/html' : 'application/json', ...headers })
    response.end(isText ? body : JSON.stringify(body ?? {}))
  }
}

async function readCall(request: IncomingMessage): Promise<Call> {
  const { method = '', url = '', headers } = request
  const { pathname: path, searchParams: query } = new URL(url, 'http://localhost')
  const body = await buffer(request)
  const type = headers['content-type'] ?? ''
  const files = new Map<string, SentFile>()
  const base = { method, path, query, headers, files, at: performance.now() }
  if (!type.startsWith('multipart/')) return { ...base, fields: body.length > 0 ? fieldsOf(JSON.parse(body.toString())) : {} }
  const fields: Record<string, string> = {}
  const boundary = /boundary="?([^";]+)/.exec(type)?.[1] ?? ''
  // Latin 1 has a character for each byte.
  for (const part of body.toString('latin1').split(`--${boundary}`).slice(1, -1)) {
    const start = part.indexOf('\r\n\r\n')
    const [head, content] = [Buffer.from(part.slice(0, start), 'latin1').toString(), Buffer.from(part.slice(start + 4, -2), 'latin1')]
    const name = /\bname="([^"]*)"/.exec(head)?.[1] ?? ''
    const filename = /\bfilename="([^"]*)"/.exec(head)?.[1]
    if (filename === undefined) fields[name] = content.toString()
    else files.set(name, { name: filename, type: /content-type: *([^\r\n]+)/i.exec(head)?.[1] ?? '', data: content })
  }
  return { ...base, fields }
}
