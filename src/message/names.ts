import { printable } from '../lib/log'
import { readList } from '../lib/words'
import type { Named, TargetNames } from './model'
import { isObject, type JsonObject } from './parse'
import { readAddress } from './target'

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const nameRule = 'a name is 1 to 64 letters, digits, dots, underlines and hyphens, the first of them a letter or digit'
const valueRule = 'it must lead to group:<id> or private:<id>, a list of these, or {to, platform, selfId}'

/**
 * Reads the names for targets. Each leads to a target, a list of them (or a text with commas), or `{to, platform, selfId}`, where `to` is
 * one of these.
 *
 * @returns the valid ones, and a warning about each of the others
 */
export function parseNames(raw: JsonObject): { names: TargetNames, warnings: string[] } {
  const names = new Map<string, Named>()
  const warnings: string[] = []
  for (const [name, value] of Object.entries(raw)) {
    const isName = namePattern.test(name)
    const named = isName ? parseNamed(value) : undefined
    if (named) names.set(name, named)
    else warnings.push(`targets: ${JSON.stringify(printable(name.slice(0, 64)))} is left out: ${isName ? valueRule : nameRule}`)
  }
  return { names, warnings }
}

function parseNamed(value: unknown): Named | undefined {
  const { to, platform, selfId, ...others } = isObject(value) ? value : { to: value }
  if (Object.keys(others).length > 0 || !isWord(platform) || !isWord(selfId)) return
  const words = readList(to) ?? []
  const addresses = words.flatMap(word => {
    // A star would be a pattern where the targets of a key have the name.
    const address = word.includes('*') ? undefined : readAddress(word)
    if (!address || isOther(address.platform, platform) || isOther(address.selfId, selfId)) return []
    return { ...address, ...platform !== undefined && { platform }, ...selfId !== undefined && { selfId } }
  })
  if (addresses.length === 0 || addresses.length < words.length) return
  return { addresses, isList: Array.isArray(to) || addresses.length > 1 }
}

/** Whether both are given and differ. */
function isOther(a: string | undefined, b: string | undefined): boolean {
  return a !== undefined && b !== undefined && a !== b
}

function isWord(value: unknown): value is string | undefined {
  return value === undefined || (typeof value === 'string' && value !== '')
}
