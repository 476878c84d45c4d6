import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { codeOf } from '../src/errors'
import { UsageError, type Body } from './client'
import { say } from './texts'

/**
 * Creates the body of a message: the plain text, or a form with the text and the files, which are streamed.
 *
 * @param progress called with the number of bytes read from the files, which starts at 0 with each attempt
 * @throws UsageError if a file cannot be sent
 */
export async function makeBody(text: Buffer, paths: readonly string[], progress?: (done: number, total: number) => void): Promise<Body> {
  if (paths.length === 0) return { type: 'text/plain; charset=utf-8', length: text.length, chunks: () => [text] }
  const boundary = randomUUID()
  const head = (disposition: string, type: string): Buffer =>
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\nContent-Type: ${type}\r\n\r\n`)
  const gap = Buffer.from('\r\n')
  const tail = Buffer.from(`--${boundary}--\r\n`)
  const words = text.length > 0 ? [head('name="text"', 'text/plain; charset=utf-8'), text, gap] : []
  const files = await Promise.all(paths.map(async path => {
    const size = await sizeOf(path)
    return { path, size, head: head(`name="file"; filename="${escapeName(basename(path))}"`, 'application/octet-stream') }
  }))
  const total = files.reduce((sum, { size }) => sum + size, 0)
  const length = [...words, ...files.flatMap(file => [file.head, gap]), tail].reduce((sum, part) => sum + part.length, total)
  async function* chunks(): AsyncGenerator<Uint8Array> {
    let done = 0
    yield* words
    for (const { path, size, head } of files) {
      yield head
      for await (const chunk of read(path, size)) {
        yield chunk
        progress?.(done += chunk.length, total)
      }
      yield gap
    }
    yield tail
  }
  return { type: `multipart/form-data; boundary=${boundary}`, length, chunks }
}

async function sizeOf(path: string): Promise<number> {
  const found = await stat(path).catch((error: unknown) => {
    throw unreadable(path, error)
  })
  if (!found.isFile()) throw new UsageError(say('cli-no-file', { file: path }))
  return found.size
}

/** Reads a file up to its announced size. */
async function* read(path: string, size: number): AsyncGenerator<Buffer> {
  if (size === 0) return
  let rest = size
  const stream: AsyncIterable<Buffer> = createReadStream(path, { end: size - 1 })
  try {
    for await (const chunk of stream) {
      rest -= chunk.length
      yield chunk
    }
  } catch (error) {
    throw unreadable(path, error)
  }
  if (rest > 0) throw new UsageError(say('cli-file-shrank', { file: path }))
}

function unreadable(path: string, error: unknown): UsageError {
  return new UsageError(say('cli-file-unreadable', { file: path, code: codeOf(error) }))
}

/** Escapes a file name like browsers (HTML, "multipart/form-data"). */
function escapeName(name: string): string {
  return name.replace(/["\r\n]/g, encodeURIComponent)
}
