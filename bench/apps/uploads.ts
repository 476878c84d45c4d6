// The load generator for uploads. It sends the same bytes repeatedly, so that it uses almost no memory itself.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { numberOf, recordOf, textOf } from '../lib/values'
import { serve } from './serve'

const boundary = 'relay-bench-5f0c1d2e3b4a59687766554433221100'
const head = Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="artifact.bin"\r\n`
  + 'Content-Type: application/octet-stream\r\n\r\n')
const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
const chunk = randomBytes(64 * 1024)

serve({ upload })

/** Uploads files, `concurrency` at a time, and measures the time until the last answer. */
async function upload(argument: unknown): Promise<object> {
  const concurrency = numberOf(argument, 'concurrency')
  const size = numberOf(argument, 'size')
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency })
  const url = textOf(argument, 'url')
  const headers = recordOf(argument, 'headers')
  let left = numberOf(argument, 'files')
  const worker = async (): Promise<void> => {
    while (left-- > 0) await uploadOne(url, headers, agent, size)
  }
  const started = performance.now()
  await Promise.all(Array.from({ length: concurrency }, worker))
  const seconds = (performance.now() - started) / 1000
  agent.destroy()
  return { bytesPerSecond: numberOf(argument, 'files') * size / seconds }
}

async function uploadOne(url: string, headers: Record<string, string>, agent: Agent, size: number): Promise<void> {
  const outgoing = request(url, {
    method: 'POST',
    agent,
    headers: {
      ...headers,
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': head.length + size + tail.length,
    },
  })
  const answered = new Promise<number>((resolve, reject) => {
    outgoing.once('error', reject).once('response', response => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0))
    })
  })
  const failed = answered.then(() => undefined)
  outgoing.write(head)
  for (let sent = 0; sent < size; sent += chunk.length) {
    if (!outgoing.write(chunk.subarray(0, size - sent))) await Promise.race([once(outgoing, 'drain'), failed])
  }
  outgoing.end(tail)
  const status = await answered
  if (status !== 200) throw new Error(`an upload was answered with ${status}`)
}
