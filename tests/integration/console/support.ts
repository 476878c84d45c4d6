import assert from 'node:assert/strict'
import { once } from 'node:events'
import { WebSocket } from 'ws'
import { isObject, type JsonObject } from '../../../src/lib/shape'
import { loadConsole } from '../../../bot/console'
import { startRelay, type RelayOptions, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'

/** What the door answers. */
export interface Answer {
  status: number
  headers: JsonObject
  json?: JsonObject
  text?: string
  base64?: string
}

/** A connection to Koishi's console, as its page has one. */
export class ConsoleClient {
  private readonly frames: JsonObject[] = []
  private readonly waiting = new Set<() => void>()
  private count = 0

  private constructor(private readonly socket: WebSocket) {
    socket.on('message', (data: Buffer) => {
      const frame: unknown = JSON.parse(data.toString())
      if (isObject(frame)) this.frames.push(frame)
      for (const look of this.waiting) look()
    })
  }

  static async connect(url: string): Promise<ConsoleClient> {
    const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/status`)
    const client = new ConsoleClient(socket)
    await once(socket, 'open')
    return client
  }

  /** Everything that it was sent so far. */
  get received(): string {
    return JSON.stringify(this.frames)
  }

  /** What a listener gives, or `{error}`. */
  async send(type: string, ...args: unknown[]): Promise<JsonObject> {
    const id = String(++this.count)
    this.socket.send(JSON.stringify({ id, type, args }))
    const frame = await this.frame(({ body }) => isObject(body) && body.id === id)
    assert(isObject(frame.body))
    const { value, error } = frame.body
    return isObject(value) ? value : { error: error ?? value ?? null }
  }

  async request(method: string, path: string, more: JsonObject = {}): Promise<Answer> {
    const { status, headers, json, text, base64, error } = await this.send('message-relay/request', { method, path, ...more })
    assert.equal(error, undefined)
    assert(typeof status === 'number' && isObject(headers))
    return {
      status, headers,
      ...isObject(json) && { json }, ...typeof text === 'string' && { text }, ...typeof base64 === 'string' && { base64 },
    }
  }

  /** The first frame, already here or still to come, that is like this. */
  frame(isIt: (frame: JsonObject) => boolean): Promise<JsonObject> {
    return new Promise((resolve, reject) => {
      const deadline = setTimeout(() => reject(new Error(`no such frame among ${this.received}`)), 10_000)
      const look = (): void => {
        const found = this.frames.find(isIt)
        if (!found) return
        clearTimeout(deadline)
        this.waiting.delete(look)
        resolve(found)
      }
      this.waiting.add(look)
      look()
    })
  }

  close(): void {
    this.socket.terminate()
  }
}

/** A relay in an app that has Koishi's console. */
export async function startWithConsole(options: RelayOptions = {}): Promise<TestRelay> {
  const relay = await startRelay({
    ...options,
    setup(app) {
      loadConsole(app)
      options.setup?.(app)
    },
  })
  return {
    ...relay,
    async stop() {
      // A console that ends while somebody is connected fails at telling them so.
      await until('nobody is connected', () => Object.keys(relay.app.console.clients).length === 0)
      await relay.stop()
    },
  }
}
