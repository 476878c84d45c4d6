import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { plainAddress } from '../access/addresses'
import { RelayError } from '../errors'

/**
 * What a request gives as a key: as `Authorization: Bearer` (RFC 6750), as `X-API-Key`, or as both. They are bytes, as Node.js hands
 * those of headers over as latin1.
 */
export function credentialsOf(headers: IncomingHttpHeaders): Buffer[] {
  const { authorization = '', 'x-api-key': bare } = headers
  const given = [/^Bearer +(.+)$/i.exec(authorization)?.[1], bare]
  return given.flatMap(text => typeof text === 'string' && text !== '' ? [Buffer.from(text, 'latin1')] : [])
}

/**
 * What the query of a request gives as a key under a name; nothing where it is left out or empty.
 *
 * @param code of the failure
 * @throws RelayError where it stands there with different values: nobody can tell which of them is meant
 */
export function queryCredentialsOf(query: URLSearchParams, name: string, code: 'unauthorized' | 'forbidden'): Buffer[] {
  const [given, ...others] = new Set(query.getAll(name).filter(Boolean))
  if (others.length > 0) {
    throw new RelayError(code, `${name} stands in the address with different values: give it once`, {
      ...code === 'unauthorized' && { headers: { 'www-authenticate': 'Bearer' } },
    })
  }
  return given === undefined ? [] : [Buffer.from(given)]
}

/**
 * The address that a request comes from, `undefined` when it is not known.
 *
 * @param trustedProxies how many entries of `X-Forwarded-For` count, from its right: each proxy adds one, and what stands further left
 *   may be anything that the caller has written. With fewer entries the request did not come through all of them.
 */
export function addressOf({ headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>, trustedProxies: number): string | undefined {
  const { 'x-forwarded-for': forwarded } = headers
  if (trustedProxies === 0 || forwarded === undefined) return plainAddress(socket.remoteAddress ?? '')
  const entry = String(forwarded).split(',').at(-trustedProxies)?.trim() ?? ''
  // Some proxies add the port.
  return plainAddress(entry.replace(/^\[([^\]]*)\](?::\d+)?$|^([\d.]+):\d+$/, '$1$2'))
}
