import type { IncomingHttpHeaders } from 'node:http'
import { equalsSecret } from '../lib/secret'

/**
 * Makes the check for the API key, which may come as `Authorization: Bearer` (RFC 6750) or as `X-API-Key`. Where both are there, a
 * right one in either suffices.
 */
export function createKeyCheck(key: string): (headers: IncomingHttpHeaders) => boolean {
  // Node.js hands header bytes over as latin1.
  const isKey = (candidate: unknown): boolean => typeof candidate === 'string' && equalsSecret(Buffer.from(candidate, 'latin1'), key)

  return headers => {
    const bearer = /^Bearer +(.+)$/i.exec(headers.authorization ?? '')?.[1]
    return isKey(bearer) || isKey(headers['x-api-key'])
  }
}
