import { RelayError } from '../errors'
import { languages } from '../lib/language'
import { printable } from '../lib/log'
import { readList } from '../lib/words'
import type { Named } from './model'
import { isObject, type JsonObject } from './parse'
import { readAddress, toPlatform } from './target'

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/**
 * Reads the names for targets. Each leads to a target, a list of them (or a text with commas), or `{to, platform, selfId, lang}`, where
 * `to` is one of these.
 *
 * @returns the valid ones, and a warning about each of the others
 */
export function parseNames(raw: JsonObject): { names: Map<string, Named>, warnings: string[] } {
  const names = new Map<string, Named>()
  const warnings: string[] = []
  for (const [name, value] of Object.entries(raw)) {
    try {
      names.set(name, parseNamed(name, value))
    } catch (error) {
      warnings.push(`targets: ${JSON.stringify(printable(name.slice(0, 64)))} is left out: ${RelayError.from(error).message}`)
    }
  }
  return { names, warnings }
}

/**
 * Reads what a name leads to.
 *
 * @throws RelayError `bad-request`, which names the field
 */
export function parseNamed(name: string, value: unknown): Named {
  demand(namePattern.test(name), 'a name must be 1 to 64 letters (a to z), digits, dots, underscores and hyphens, and begin with a letter or digit')
  const { to, platform: given, selfId, self_id: account = selfId, lang, ...others } = isObject(value) ? value : { to: value }
  const [stranger] = Object.keys(others)
  demand(stranger === undefined, `targets have no field ${JSON.stringify(printable(String(stranger).slice(0, 64)))}`)
  demand(isWord(given), 'platform must be text')
  demand(isWord(account), 'selfId must be text')
  const language = languages.find(each => each === lang)
  demand(language === lang, `lang must be ${languages.join(' or ')}`)
  const platform = given && toPlatform(given)
  const words = readList(to) ?? []
  const addresses = words.flatMap(word => {
    // A star would be a pattern where the targets of a key have the name.
    const address = word.includes('*') ? undefined : readAddress(word)
    if (!address || isOther(address.platform, platform) || isOther(address.selfId, account)) return []
    return { ...address, ...platform !== undefined && { platform }, ...account !== undefined && { selfId: account } }
  })
  const isComplete = words.length > 0 && addresses.length === words.length
  demand(isComplete, 'to must be group:<id> or private:<id>, or a list of these, and must not name another platform or account than platform and selfId')
  return { addresses, isList: Array.isArray(to) || addresses.length > 1, ...language && { lang: language } }
}

function demand(condition: boolean, rule: string): asserts condition {
  if (!condition) throw new RelayError('bad-request', rule)
}

/** Whether both are given and differ. */
function isOther(a: string | undefined, b: string | undefined): boolean {
  return a !== undefined && b !== undefined && a !== b
}

function isWord(value: unknown): value is string | undefined {
  return value === undefined || (typeof value === 'string' && value !== '')
}
