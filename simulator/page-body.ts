import type { IncomingMessage } from 'node:http'
import { isRecord, parseJson } from './parse'

const largestBody = 64 * 1024

/** Reads the JSON object that a page has posted, or says what is wrong with it. */
export async function readBody(request: IncomingMessage): Promise<{ body: Record<string, unknown> } | { error: string }> {
  // Only this type: a form of another site can be sent without asking, JSON cannot.
  if (!/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? '')) return { error: 'the body must be application/json' }
  const text = await readText(request)
  if (text === null) return { error: 'the body must not be larger than 64 KiB' }
  const body = parseJson(text)?.value
  return isRecord(body) ? { body } : { error: 'the body must be a JSON object' }
}

async function readText(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = []
  let size = 0
  const body: AsyncIterable<Buffer> = request.iterator({ destroyOnReturn: false })
  for await (const chunk of body) {
    size += chunk.length
    if (size > largestBody) {
      // The rest is read and thrown away, so that the refusal reaches the sender.
      request.resume()
      return null
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
