import { readList } from '../lib/words'
import { printable } from '../lib/log'
import type { Address, Named, TargetNames } from './model'
import { isObject, type JsonObject } from './parse'
import { readAddress } from './target'

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/**
 * Reads the names that stand for targets. Each leads to a target, a list of them (or a text with commas), or `{to, platform, selfId}`,
 * where `to` is one of these.
 *
 * @returns those that can be used, and a warning about each of the others
 */
export function parseNames(raw: JsonObject): { names: TargetNames, warnings: string[] } {
  const names = new Map<string, Named>()
  const warnings: string[] = []
  for (const [name, value] of Object.entries(raw)) {
    const named = namePattern.test(name) ? parseNamed(value) : undefined
    if (named) names.set(name, named)
    else warnings.push(`targets: ${JSON.stringify(printable(name.slice(0, 64)))} is left out: ${namePattern.test(name) ? valueRule : nameRule}`)
  }
  return { names, warnings }
}

const nameRule = 'a name is 1 to 64 letters, digits, dots, underlines and hyphens, the first of them a letter or digit'
const valueRule = 'it must lead to group:<id> or private:<id>, a list of these, or {to, platform, selfId}'

function parseNamed(value: unknown): Named | undefined {
  if (!isObject(value)) return parseAddresses(value)
  const { to, platform, selfId, ...others } = value
  const named = parseAddresses(to)
  if (!named || Object.keys(others).length > 0 || !isWord(platform) || !isWord(selfId)) return
  // Where both name a platform, it must be the same.
  if (platform !== undefined && named.addresses.some(address => address.platform !== undefined && address.platform !== platform)) return
  return {
    ...named,
    ...platform !== undefined && { addresses: named.addresses.map(({ target }) => ({ target, platform })) },
    ...selfId !== undefined && { selfId },
  }
}

function parseAddresses(value: unknown): Named | undefined {
  const addresses: Address[] = []
  for (const word of readList(value) ?? []) {
    // A star would be taken for a pattern where the targets of a key have the name.
    const address = word.includes('*') ? undefined : readAddress(word)
    if (!address) return
    addresses.push(address)
  }
  return addresses.length > 0 ? { addresses, isList: Array.isArray(value) || addresses.length > 1 } : undefined
}

function isWord(value: unknown): value is string | undefined {
  return value === undefined || (typeof value === 'string' && value !== '')
}
