import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { request as requestHttp, type IncomingMessage } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isLoopbackHost } from './guards'

const timeout = 10_000
const largest = 1024 * 1024 * 1024
const mostRedirects = 5

/** Size in bytes and SHA-256 in hex of the bytes read. */
export interface Digest { size: number, sha256: string }

/** Whether a link may be fetched: only from this machine, because the simulator makes no other traffic. */
export function isFetchable(link: string): boolean {
  return URL.canParse(link) && isLoopbackHost(new URL(link).hostname)
}

/**
 * Reads a link on this machine completely, within 10 s and up to 1 GiB, and follows redirects on this machine.
 * @param saveTo a path to also write the bytes to
 * @throws Error when the link leads elsewhere, its status is not 200, or it is too slow or too large
 */
export async function fetchLink(link: string, signal: AbortSignal, saveTo?: string): Promise<Digest> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(timeout)])
  const response = await follow(link, limited)
  const hash = createHash('sha256')
  const file = saveTo === undefined ? null : await open(saveTo, 'w')
  let size = 0
  try {
    const chunks: AsyncIterable<Buffer> = response
    for await (const chunk of chunks) {
      size += chunk.length
      if (size > largest) throw new Error('larger than 1 GiB')
      hash.update(chunk)
      await file?.write(chunk)
    }
  } finally {
    response.destroy()
    await file?.close()
  }
  return { size, sha256: hash.digest('hex') }
}

async function follow(link: string, signal: AbortSignal): Promise<IncomingMessage> {
  let url = new URL(link)
  for (let hop = 0; hop <= mostRedirects; hop++) {
    if (!isLoopbackHost(url.hostname)) throw new Error(`${url.host} is not this machine`)
    const response = await get(url, signal)
    const status = response.statusCode ?? 0
    if (status === 200) return response
    response.destroy()
    const location = response.headers.location
    if (status < 300 || status > 399 || location === undefined) throw new Error(`下载文件失败: ${response.statusMessage ?? ''}`)
    url = new URL(location, url)
  }
  throw new Error('too many redirects')
}

function get(url: URL, signal: AbortSignal): Promise<IncomingMessage> {
  const request = url.protocol === 'https:' ? requestHttps : requestHttp
  return new Promise((resolve, reject) => {
    // Without an agent, because a pooled connection would outlive the simulator.
    request(url, { agent: false, signal }, resolve).on('error', reject).end()
  })
}
