import assert from 'node:assert/strict'
import { WebSocket } from 'ws'

/** Whether a value is an object whose properties can be looked at. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** A bot as any OneBot client would be. */
export class Bot {
  private readonly received: Record<string, unknown>[] = []
  private readonly waiting = new Set<() => void>()
  private echo = 0

  private constructor(private readonly socket: WebSocket) {
    socket.on('message', (data: Buffer) => {
      const frame: unknown = JSON.parse(data.toString())
      if (isRecord(frame)) this.received.push(frame)
      for (const look of this.waiting) look()
    })
  }

  /** Resolves once the connection is open. */
  static async connect(endpoint: string): Promise<Bot> {
    const socket = new WebSocket(endpoint)
    const bot = new Bot(socket)
    await new Promise((resolve, reject) => {
      socket.once('open', resolve)
      socket.once('error', reject)
    })
    return bot
  }

  /** The first frame, already here or still to come, that is like this. */
  async frame(isIt: (frame: Record<string, unknown>) => boolean): Promise<Record<string, unknown>> {
    return await new Promise((resolve, reject) => {
      const deadline = setTimeout(() => {
        this.waiting.delete(look)
        reject(new Error(`no such frame among ${JSON.stringify(this.received)}`))
      }, 10_000)
      const look = (): void => {
        const found = this.received.find(isIt)
        if (found === undefined) return
        clearTimeout(deadline)
        this.waiting.delete(look)
        resolve(found)
      }
      this.waiting.add(look)
      look()
    })
  }

  /** Calls an action that has to succeed. */
  async call(action: string, params: object): Promise<Record<string, unknown>> {
    const echo = ++this.echo
    this.socket.send(JSON.stringify({ action, params, echo }))
    const answer = await this.frame(frame => frame.echo === echo)
    assert.equal(answer.status, 'ok', JSON.stringify(answer))
    return answer
  }

  /** Sends one message made of segments to a group. */
  async send(groupId: string, ...message: { type: string, data: Record<string, unknown> }[]): Promise<void> {
    await this.call('send_group_msg', { group_id: Number(groupId), message })
  }

  /** Sends a text to a group. */
  async sendText(groupId: string, text: string): Promise<void> {
    await this.send(groupId, { type: 'text', data: { text } })
  }

  /** Resolves once the connection is closed; may be called twice. */
  async close(): Promise<void> {
    if (this.socket.readyState === WebSocket.CLOSED) return
    const closed = new Promise(resolve => this.socket.once('close', resolve))
    this.socket.close()
    await closed
  }
}
