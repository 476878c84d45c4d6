import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'
import { RelayError } from '../errors'
import { say, type Text } from '../texts/text'

/**
 * The keys in the headers of a request: `Authorization: Bearer` (RFC 6750), `X-API-Key`, or both. They are returned as bytes, because
 * Node.js decodes headers as latin1.
 */
export function credentialsOf(headers: IncomingHttpHeaders): Buffer[] {
  const { authorization = '', 'x-api-key': bare } = headers
  const given = [/^Bearer +(.+)$/i.exec(authorization)?.[1], bare]
  return given.flatMap(text => typeof text === 'string' && text !== '' ? [Buffer.from(text, 'latin1')] : [])
}

/**
 * What is wrong with the form of a key in the headers, for its caller; `undefined` if nothing is. It depends on the request alone, so that
 * it reveals nothing about the keys.
 */
export function flawOfCredentials({ authorization = 'Bearer x', 'x-api-key': bare }: IncomingHttpHeaders): Text | undefined {
  if (/^Bearer\b/i.test(String(bare))) return say('flaw-bearer-in-key')
  if (/^Bearer$/i.test(authorization)) return say('flaw-nothing-after-bearer')
  // Some doors take the password of Basic (RFC 7617).
  if (!/^(?:Bearer|Basic) +/i.test(authorization)) return say('flaw-no-bearer')
  if (/^Bearer +(?:["'<$]|Bearer\b)/i.test(authorization)) return say('flaw-quotes-after-bearer')
}

/**
 * The key in a query parameter; nothing if the parameter is absent or empty.
 *
 * @param code the code of the failure
 * @throws RelayError if the parameter has several different values: it is unclear which of them is meant
 */
export function queryCredentialsOf(query: URLSearchParams, name: string, code: 'unauthorized' | 'forbidden'): Buffer[] {
  const [given, ...others] = new Set(query.getAll(name).filter(Boolean))
  if (others.length > 0) {
    throw new RelayError(code, say('key-given-twice', { name }), {
      ...code === 'unauthorized' && { headers: { 'www-authenticate': 'Bearer' } },
    })
  }
  return given === undefined ? [] : [Buffer.from(given)]
}

/**
 * The address of the caller; `undefined` if it is unknown.
 *
 * @param trustedProxies the number of proxies, and so of trusted entries of `X-Forwarded-For`, from the right: each proxy adds one, and
 *   entries further left may be forged by the caller. With fewer entries, the request did not come through all proxies.
 */
export function addressOf({ headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>, trustedProxies: number): string | undefined {
  const { 'x-forwarded-for': forwarded } = headers
  if (trustedProxies === 0 || forwarded === undefined) return plainAddress(socket.remoteAddress ?? '')
  const entry = String(forwarded).split(',').at(-trustedProxies)?.trim() ?? ''
  // Some proxies add the port.
  return plainAddress(entry.replace(/^\[([^\]]*)\](?::\d+)?$|^([\d.]+):\d+$/, '$1$2'))
}

/** Normalises an IP address for comparison and log: no zone, and IPv4 within IPv6 becomes IPv4; `undefined` for anything else. */
export function plainAddress(text: string): string | undefined {
  const address = text.replace(/%.*$/s, '').replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '')
  return isIP(address) > 0 ? address : undefined
}

/**
 * Reads addresses and ranges in CIDR notation, such as `10.0.0.0/8` or `2001:db8::/32`.
 *
 * @returns a function that tells whether they contain a plain address; `undefined` if an element of the list is neither
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
