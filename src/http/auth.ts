import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/**
 * Makes the check for the API key, which may come as `Authorization: Bearer` or as `X-API-Key`; a right one in either
 * suffices (document, section 5). Digests of one length are compared, so that the time tells nothing about the key.
 */
export function createKeyCheck(key: string): (headers: IncomingHttpHeaders) => boolean {
  const expected = digest(Buffer.from(key))

  function isKey(candidate: unknown): boolean {
    // Node.js hands header bytes over as latin1.
    return typeof candidate === 'string' && timingSafeEqual(digest(Buffer.from(candidate, 'latin1')), expected)
  }

  return headers => {
    const bearer = /^Bearer +(.+)$/i.exec(headers.authorization ?? '')?.[1]
    return isKey(bearer) || isKey(headers['x-api-key'])
  }
}

function digest(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest()
}
