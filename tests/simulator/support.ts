import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request, type IncomingHttpHeaders } from 'node:http'
import type { TestContext } from 'node:test'
import { WebSocket, type ClientOptions } from 'ws'
import { Simulator, type SimulatorOptions } from '../../simulator'
import { record } from '../docs/support/json'

export { isObject as isRecord } from '../../src/lib/shape'
export { record, records } from '../docs/support/json'

export type Frame = Record<string, unknown>

/** A simulator that ends with the test. */
export async function start(t: TestContext, options?: SimulatorOptions): Promise<Simulator> {
  const simulator = await Simulator.start(options)
  t.after(() => simulator.close())
  return simulator
}

/** A simulator with a bot connected to it. */
export async function startWithClient(t: TestContext, options?: SimulatorOptions): Promise<{ simulator: Simulator, client: Client }> {
  const simulator = await start(t, options)
  return { simulator, client: await Client.connect(t, simulator.endpoint) }
}

/** A plain OneBot client. */
export class Client {
  readonly frames: Frame[] = []
  /** Close code, once closed. */
  readonly closed: Promise<number>
  private readonly looks = new Set<() => void>()
  private echo = 0

  private constructor(readonly socket: WebSocket) {
    socket.on('message', (data: Buffer) => {
      this.frames.push(record(JSON.parse(data.toString())))
      for (const look of this.looks) look()
    })
    this.closed = new Promise(resolve => {
      socket.on('close', resolve)
    })
  }

  static async connect(t: TestContext, url: string, options: ClientOptions = {}): Promise<Client> {
    const socket = new WebSocket(url, options)
    const client = new Client(socket)
    t.after(() => {
      socket.terminate()
    })
    await once(socket, 'open')
    socket.on('error', () => undefined)
    return client
  }

  /** Sends a call without waiting; returns its echo. */
  post(action: string, params: object): number {
    const echo = ++this.echo
    this.socket.send(JSON.stringify({ action, params, echo }))
    return echo
  }

  /** The answer to a call. */
  async call(action: string, params: object = {}): Promise<Frame> {
    const echo = this.post(action, params)
    return this.frame(frame => frame.echo === echo)
  }

  /** Sends a message of segments, or a text, to a group. Rejects when it is refused. */
  async send(group: string, ...message: (string | { type: string, data: Record<string, unknown> })[]): Promise<void> {
    const segments = message.map(part => typeof part === 'string' ? text(part) : part)
    const answer = await this.call('send_group_msg', { group_id: Number(group), message: segments })
    assert.equal(answer.status, 'ok', JSON.stringify(answer))
  }

  /** Resolves once the connection is closed; may be called twice. */
  async close(): Promise<void> {
    this.socket.close()
    await this.closed
  }

  /** The first frame, already here or to come, that is like this. */
  frame(isIt: (frame: Frame) => boolean): Promise<Frame> {
    return new Promise((resolve, reject) => {
      const deadline = setTimeout(() => {
        this.looks.delete(look)
        reject(new Error(`no such frame among ${JSON.stringify(this.frames)}`))
      }, 5000)
      const look = (): void => {
        const found = this.frames.find(isIt)
        if (found === undefined) return
        clearTimeout(deadline)
        this.looks.delete(look)
        resolve(found)
      }
      this.looks.add(look)
      look()
    })
  }
}

export interface RawResponse { status: number, headers: IncomingHttpHeaders, body: string }

/** A request whose path and headers are sent exactly as given. */
export function rawRequest(
  port: number,
  { path = '/', method = 'GET', headers = {}, body }: { path?: string, method?: string, headers?: Record<string, string>, body?: string },
): Promise<RawResponse> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false }, response => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      }).on('end', () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text })
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** One text segment. */
export function text(content: string): { type: string, data: { text: string } } {
  return { type: 'text', data: { text: content } }
}
