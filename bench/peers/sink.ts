import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocketServer, type WebSocket } from 'ws'
import { field, numberOf } from '../lib/values'

/** How many messages of a chat its history shows. */
const historyLength = 100

/** The text of a message, by whose number the sink knows it again. */
export function textOf(id: number): string {
  return `build #4711 of main passed in 2 min 13 s (m${id})`
}

/**
 * The platforms of all peers, which note when each message arrives: a web hook that answers 200 to anything, and OneBot 11 over WebSocket
 * with a history of each group.
 */
export class Sink {
  /** How long the platform takes to answer, in milliseconds. */
  delay = 0
  private readonly counts = new Map<number, number>()
  private readonly waiting = new Map<number, (time: number) => void>()
  private readonly histories = new Map<string, object[]>()
  private lastMessage = 0
  private readonly sockets = new WebSocketServer({ noServer: true })

  private constructor(private readonly server: Server) {
    server.on('request', (request, response) => void this.answer(request, response))
    server.on('upgrade', (request, socket, head) => this.sockets.handleUpgrade(request, socket, head, each => this.accept(each)))
  }

  static async start(): Promise<Sink> {
    const server = createServer()
    await once(server.listen(0, '127.0.0.1'), 'listening')
    return new Sink(server)
  }

  /** Host and port, for addresses of web hooks and OneBot. */
  get address(): string {
    return `127.0.0.1:${numberOf(this.server.address(), 'port')}`
  }

  /** How often a message has arrived. */
  count(id: number): number {
    return this.counts.get(id) ?? 0
  }

  /** Answers when a message arrives first, by `performance.now()`. */
  arrival(id: number): Promise<number> {
    return new Promise(resolve => this.waiting.set(id, resolve))
  }

  async close(): Promise<void> {
    for (const socket of this.sockets.clients) socket.terminate()
    this.server.closeAllConnections()
    this.server.close()
    await once(this.server, 'close')
  }

  /** Notes each message that a text contains. */
  private note(text: string): void {
    const now = performance.now()
    // Some peers write a message several times into one request.
    for (const id of new Set(Array.from(text.matchAll(/\(m(\d+)\)/g), ([, digits]) => Number(digits)))) {
      this.counts.set(id, this.count(id) + 1)
      this.waiting.get(id)?.(now)
      this.waiting.delete(id)
    }
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += String(chunk)
    this.note(text)
    if (this.delay > 0) await sleep(this.delay)
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  }

  private accept(socket: WebSocket): void {
    socket.on('message', data => void this.call(socket, Buffer.isBuffer(data) ? data.toString() : ''))
    const time = Math.floor(Date.now() / 1000)
    socket.send(JSON.stringify({ time, self_id: 10000, post_type: 'meta_event', meta_event_type: 'lifecycle', sub_type: 'connect' }))
  }

  private async call(socket: WebSocket, frame: string): Promise<void> {
    const call: unknown = JSON.parse(frame)
    const data = this.carryOut(String(field(call, 'action')), field(call, 'params'), frame)
    if (this.delay > 0) await sleep(this.delay)
    const answer = data ? { status: 'ok', retcode: 0, data } : { status: 'failed', retcode: 1404, data: null }
    socket.send(JSON.stringify({ ...answer, echo: field(call, 'echo') }))
  }

  /** @returns the data of the answer, `undefined` for an unknown action */
  private carryOut(action: string, params: unknown, frame: string): object | undefined {
    const group = String(field(params, 'group_id'))
    const history = this.histories.get(group) ?? []
    switch (action) {
      case 'get_login_info': return { user_id: 10000, nickname: 'bot' }
      case 'get_status': return { online: true, good: true }
      case 'get_group_msg_history': return { messages: history }
      case 'send_group_msg': {
        this.note(frame)
        const id = ++this.lastMessage
        const sent = {
          self_id: 10000, user_id: 10000, sender: { user_id: 10000, nickname: 'bot' }, time: Math.floor(Date.now() / 1000),
          message_id: id, message_seq: id, real_id: id, message_type: 'group', group_id: Number(group), message: field(params, 'message'),
          post_type: 'message_sent', message_format: 'array',
        }
        this.histories.set(group, [...history, sent].slice(-historyLength))
        return { message_id: id }
      }
      default: return
    }
  }
}
