import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'
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

/** Normalises an address for comparison and log: without a zone, and an IPv4 address within IPv6 as IPv4; `undefined` for anything else. */
export function plainAddress(text: string): string | undefined {
  const address = text.replace(/%.*$/s, '').replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '')
  return isIP(address) > 0 ? address : undefined
}

/**
 * Reads addresses and ranges in CIDR notation, such as `10.0.0.0/8` or `2001:db8::/32`.
 *
 * @returns whether a plain address is one of them; `undefined` when an element of the list is neither
 */
export function parseRanges(list: readonly string[]): ((address: string) => boolean) | undefined {
  const ranges = new BlockList()
  for (const text of list) {
    const [, base = '', prefix] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? []
    const family = isIP(base)
    const longest = family === 4 ? 32 : 128
    const length = prefix === undefined ? longest : Number(prefix)
    if (family === 0 || length > longest || base.includes('%')) return
    ranges.addSubnet(base, length, family === 4 ? 'ipv4' : 'ipv6')
  }
  return address => ranges.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6')
}
