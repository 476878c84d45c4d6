import { readdir } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { connect as connectSocket } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { RelayError } from '../../src/errors'
import { receive, type ReceiveLimits } from '../../src/uploads/receive'
import { UploadStore } from '../../src/uploads/store'
import { temporaryFolder } from './folder'
import { serve } from './listen'

export const boundary = 'limit'

/** Everything below a directory, sorted; empty if the directory is missing. */
export async function tree(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true }).catch(() => [])
  return entries.sort()
}

export interface Answer {
  status: number
  files: string[]
  code: string
  text: string
}

/** A server that stores uploads, discards the rest of a refused one, and records the outcomes. */
export async function startServer(t: TestContext, limits: Partial<ReceiveLimits> = {}, stop?: AbortSignal) {
  const directory = join(temporaryFolder(), 'uploads')
  const store = new UploadStore(directory)
  const outcomes: (string[] | Error)[] = []
  const requests: IncomingMessage[] = []
  /** Whether each refused request was left to its caller to discard. */
  const left: boolean[] = []
  const url = await serve(t, (request, response) => {
    requests.push(request)
    const answer = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    void receive(request, store, { maxFileSize: 1000, allowedExtensions: [], ...limits }, stop).then(files => {
      outcomes.push(files)
      answer(200, { files })
    }, (error: unknown) => {
      outcomes.push(error instanceof Error ? error : new Error('no error was thrown', { cause: error }))
      left.push(request.isPaused() && request.listenerCount('data') === 0)
      const { status, code, message } = RelayError.from(error)
      answer(status, { code, text: message })
      request.resume()
    })
  })
  return { port: Number(new URL(url).port), directory, store, outcomes, requests, left }
}

/** A connection that sends raw bytes. */
export function connect(t: TestContext, port: number) {
  const socket = connectSocket(port, '127.0.0.1')
  // Heads and bodies are written separately, and Nagle's algorithm would delay each body.
  socket.setNoDelay(true).on('error', () => undefined)
  t.after(() => socket.destroy())
  let received = ''
  let wake = (): void => undefined
  socket.setEncoding('utf8').on('data', (text: string) => {
    received += text
    wake()
  }).on('close', () => {
    wake()
  })

  /** Waits for the next answer on this connection. */
  async function answer(): Promise<Answer> {
    for (;;) {
      const match = /^HTTP\/1\.1 (\d+)[^]*?\r\n\r\n(?:[0-9a-f]+\r\n)?(\{.*?\})(?:\r\n0\r\n\r\n)?(?=HTTP|$)/.exec(received)
      if (match?.[1] !== undefined && match[2] !== undefined) {
        received = received.slice(match[0].length)
        const body: unknown = JSON.parse(match[2])
        return { status: Number(match[1]), files: [], code: '', text: '', ...body as object }
      }
      if (socket.destroyed) throw new Error(`the connection was closed after: ${received}`)
      await new Promise<void>(resolve => {
        wake = resolve
      })
    }
  }

  /** Sends a whole request. */
  async function post(body: Buffer | string, type = `multipart/form-data; boundary=${boundary}`) {
    socket.write(head(type, `Content-Length: ${Buffer.byteLength(body)}`))
    socket.write(body)
    return answer()
  }

  return { socket, answer, post }
}

export function head(type: string, ...headers: string[]): string {
  return ['POST / HTTP/1.1', 'Host: relay', `Content-Type: ${type}`, ...headers, '', ''].join('\r\n')
}

export interface Part {
  /** Header lines; `file` adds a Content-Disposition with this name. */
  headers?: string[]
  file?: string
  content?: Buffer | string
}

/** A multipart body of these parts. */
export function multipart(...parts: Part[]): Buffer {
  const pieces = parts.flatMap(({ headers = [], file, content = 'content' }) => {
    const disposition = file === undefined ? [] : [`Content-Disposition: form-data; name="f"; filename="${file}"`]
    return [`--${boundary}\r\n${[...disposition, ...headers, '', ''].join('\r\n')}`, content, '\r\n']
  })
  return Buffer.concat([...pieces, `--${boundary}--\r\n`].map(piece => Buffer.from(piece)))
}
