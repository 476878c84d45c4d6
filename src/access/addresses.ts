import { BlockList, isIP } from 'node:net'

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
