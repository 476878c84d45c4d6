import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { fieldsOf } from '../../../src/lib/shape'
import { until } from '../../support/until'
import { multipart as multipartOf } from '../../support/uploads'

/** An answer as it stood on the wire. */
export interface RawAnswer {
  status: number
  /** By lower-case name; the last one where there are several. */
  headers: ReadonlyMap<string, string>
  body: string
}

/** A connection on which a test sends what no polite client would. It ends with its server at the latest. */
export class Wire {
  private received = Buffer.alloc(0)
  private error: unknown

  private constructor(readonly socket: Socket) {
    socket.on('data', (chunk: Buffer) => {
      this.received = Buffer.concat([this.received, chunk])
    })
    socket.on('error', error => {
      this.error = error
    })
  }

  /** Opens one to the server at this address. */
  static async open(url: string): Promise<Wire> {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    return new Wire(socket)
  }

  /** Whether the server has closed the connection. */
  get isClosed(): boolean {
    return this.socket.destroyed || this.socket.readableEnded
  }

  /** Sends a head, its lines given one by one, and what follows it. */
  send(lines: readonly string[], body: string | Buffer = ''): void {
    this.socket.write(Buffer.concat([Buffer.from([...lines, '', ''].join('\r\n'), 'latin1'), Buffer.from(body)]))
  }

  /** Sends as much as the server takes; resolves when all is sent, or the connection is gone. Returns how many times it sent. */
  async pour(chunk: Buffer, times: number): Promise<number> {
    let sent = 0
    for (; sent < times && !this.isClosed; sent++) {
      if (!this.socket.write(chunk)) await until('the server takes more', () => !this.socket.writableNeedDrain || this.isClosed)
    }
    return sent
  }

  /** Waits for `100 Continue`, by which the server tells that it has the head of a request that asked for it. */
  async continued(): Promise<void> {
    await until('the server tells to go on', () => this.received.toString('latin1').startsWith('HTTP/1.1 100 '))
  }

  /** The next answer, which has to come with a Content-Length or without a body; interim ones are skipped. */
  async answer(withBody = true): Promise<RawAnswer> {
    let parsed: RawAnswer | undefined
    await until('there is an answer', () => {
      parsed = this.parse(withBody)
      if (!parsed && this.isClosed) throw new Error(`the connection was closed after: ${this.received.toString()}`, { cause: this.error })
      return parsed !== undefined
    })
    assert(parsed)
    return parsed.status === 100 ? this.answer(withBody) : parsed
  }

  /** Resolves when the server has closed the connection. */
  async closed(): Promise<void> {
    await until('the connection is closed', () => this.isClosed)
  }

  private parse(withBody: boolean): RawAnswer | undefined {
    const end = this.received.indexOf('\r\n\r\n')
    if (end < 0) return
    const [first = '', ...lines] = this.received.toString('latin1', 0, end).split('\r\n')
    const headers = new Map(lines.map(line => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    }))
    const start = end + 4
    const length = withBody ? Number(headers.get('content-length') ?? 0) : 0
    if (this.received.length < start + length) return
    const body = this.received.toString('utf8', start, start + length)
    this.received = this.received.subarray(start + length)
    return { status: Number(first.split(' ')[1]), headers, body }
  }
}

/** Checks that an answer on the wire is the envelope of a failure. */
export function assertFailure(answer: RawAnswer, status: number, msg?: string | RegExp): void {
  assert.equal(answer.status, status, answer.body)
  assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
  assert.match(answer.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/)
  const body: unknown = JSON.parse(answer.body)
  assert(typeof body === 'object' && body !== null && 'msg' in body && typeof body.msg === 'string')
  assert('error' in body)
  const { id, delivery_id: delivery = answer.headers.get('x-request-id'), ...facts } = fieldsOf(body.error)
  assert.deepEqual([typeof id, delivery], ['string', answer.headers.get('x-request-id')])
  assert.deepEqual(Object.entries(facts).map(([name, value]) => [name, String(value)]),
    [['outcome', answer.headers.get('relay-outcome')], ['retry_after', answer.headers.get('retry-after')]].filter(([, value]) => value))
  assert.deepEqual(body, { code: status, msg: body.msg, data: null, error: body.error })
  if (msg instanceof RegExp) assert.match(body.msg, msg)
  else if (msg !== undefined) assert.equal(body.msg, msg)
}

/** A multipart body of files, with the boundary "limit". */
export function multipart(files: readonly (readonly [name: string, bytes: string | Buffer])[]): Buffer {
  return multipartOf(...files.map(([file, content]) => ({ file, content })))
}
