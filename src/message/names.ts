import { demand, RelayError } from '../errors'
import { languages } from '../lib/language'
import { quoted } from '../lib/log'
import { isObject, withoutNull, type JsonObject } from '../lib/shape'
import { isSigningSecret } from '../lib/webhook-signature'
import { isSet, readList, refuseFields } from '../lib/words'
import { httpPlatform, type Address, type HttpWay, type Ways, type Named, type Quiet, type Way, type TargetNames } from './model'
import { isZone, ownZone } from './quiet'
import { chatOf, isName, nameRule, readAddress, toName, toPlatform } from './target'

/** The longest digest, and the longest wait for a way, in seconds. */
const longestDigest = 3600
const longestAfter = 86_400
const usualAfter = 120
const mostWays = 20
const quietRule = 'quiet must be an object such as {from: "22:00", to: "08:00", zone: Asia/Shanghai}'
const wayRule = 'an address of first must be group:<id> or private:<id>, with platform and account in front or not, a name, an http:// or https:// address, or {url, secret, format}'

/**
 * Reads the names of targets. The value of each is a target, a list of targets (or a text with commas), or an object with `to` or
 * `first` and a policy.
 *
 * @returns the valid names, and a warning about each of the others
 */
export function parseNames(raw: JsonObject): { names: Map<string, Named>, warnings: string[] } {
  const names = new Map<string, Named>()
  const warnings: string[] = []
  const attempt = (name: string, work: () => void): void => {
    try {
      work()
    } catch (error) {
      names.delete(name)
      warnings.push(`targets: ${quoted(name)} is left out: ${RelayError.from(error).message}`)
    }
  }
  for (const [written, value] of Object.entries(raw)) {
    const name = toName(written)
    attempt(name, () => names.set(name, parseNamed(name, value)))
  }
  for (const [name, { first }] of names) attempt(name, () => first && demandWays(first, names))
  return { names, warnings }
}

/**
 * Reads the value of a name.
 *
 * @param names the names that its ways may use; without it, they are not checked
 * @throws RelayError `bad-request`, which names the field
 */
export function parseNamed(name: string, value: unknown, names?: TargetNames): Named {
  demand(isName(name), nameRule)
  const {
    to, first, after, when_unknown: whenUnknown, platform: given, selfId: accountId, self_id: account = accountId, lang, digest, quiet,
    ...others
  } = isObject(value) ? withoutNull(value) : { to: value }
  refuseFields('targets', Object.keys(others))
  demand(isWord(given), 'platform must be text')
  const selfId = Number.isSafeInteger(account) ? String(account) : account
  demand(isWord(selfId), 'selfId must be text')
  const language = languages.find(each => each === lang)
  demand(language === lang, `lang must be ${languages.join(' or ')}`)
  demand(first === undefined || to === undefined, 'give to or first, not both')
  const spacing = isSet(digest) ? readSeconds(digest, 0, longestDigest, 'digest') : 0
  const hours = isSet(quiet) ? parseQuiet(quiet) : undefined
  const policy = { name, ...spacing > 0 && { digest: spacing }, ...hours && { quiet: hours }, ...language && { lang: language } }
  const isTimed = spacing > 0 || hours !== undefined
  const rules = { ...language && { lang: language }, ...(isTimed || first !== undefined) && { policy } }
  if (first !== undefined) {
    demand(given === undefined && selfId === undefined, 'with first, each address names its platform and account itself: leave out platform and selfId')
    const ways = parseWays(first, after, whenUnknown)
    if (names) demandWays(ways, names)
    return { addresses: [], isList: false, first: ways, ...rules }
  }
  demand(after === undefined && whenUnknown === undefined, 'after and when_unknown go with first')
  const platform = given && toPlatform(given)
  const words = readList(to) ?? []
  const addresses = words.flatMap(word => {
    const address = readChat(word)
    if (!address || isOther(address.platform, platform) || isOther(address.selfId, selfId)) return []
    return { ...address, ...platform !== undefined && { platform }, ...selfId !== undefined && { selfId } }
  })
  const isComplete = words.length > 0 && addresses.length === words.length
  demand(isComplete, 'to must be group:<id> or private:<id>, or a list of these, and must not name another platform or account than platform and selfId')
  return { addresses, isList: Array.isArray(to) || addresses.length > 1, ...rules }
}

function parseWays(first: unknown, after: unknown, whenUnknown: unknown): Ways {
  const values: unknown[] = typeof first === 'string' ? first.split(',').map(word => word.trim()) : Array.isArray(first) ? first : []
  demand(values.length > 0 && values.length <= mostWays, `first must be a list of 1 to ${mostWays} addresses`)
  demand(!isSet(whenUnknown) || whenUnknown === 'stop' || whenUnknown === 'next', 'when_unknown must be stop or next')
  return {
    ways: values.map(parseWay),
    after: isSet(after) ? readSeconds(after, 1, longestAfter, 'after') : usualAfter * 1000,
    whenUnknown: whenUnknown === 'next' ? 'next' : 'stop',
  }
}

function parseWay(value: unknown): Way {
  if (isObject(value)) return parseHttpWay(withoutNull(value))
  demand(typeof value === 'string', wayRule)
  if (/^https?:\/\//i.test(value)) return parseHttpWay({ url: value })
  const address = readChat(value)
  if (address) return address
  const name = toName(value)
  demand(isName(name), wayRule)
  return { name }
}

function parseHttpWay({ url, secret, format, ...others }: JsonObject): HttpWay {
  const isAddress = typeof url === 'string' && /^https?:\/\//i.test(url) && URL.canParse(url)
  demand(isAddress && Object.keys(others).length === 0, wayRule)
  demand(isWord(secret) && (secret === undefined || isSigningSecret(secret)), 'secret must be text, or whsec_ and a key in base64 with its padding')
  demand(!isSet(format) || format === 'apprise', 'format must be apprise, or left out')
  return { url, ...secret !== undefined && { secret }, ...isSet(format) && { format: 'apprise' } }
}

/** Checks that each name among the ways leads to one chat. This rules out cycles, too. */
function demandWays({ ways }: Ways, names: TargetNames): void {
  for (const way of ways) {
    if ('name' in way) demand(chatOf(way.name, names) !== undefined, `first: ${JSON.stringify(way.name)} must be a name that leads to one chat`)
  }
}

function parseQuiet(value: unknown): Quiet {
  demand(isObject(value), quietRule)
  const { from, to, zone = ownZone(), ...others } = value
  demand(Object.keys(others).length === 0, quietRule)
  demand(typeof zone === 'string' && isZone(zone), 'quiet.zone must be the name of a time zone, such as Asia/Shanghai')
  const [begin, end] = [readMinutes(from, 'from'), readMinutes(to, 'to')]
  demand(begin !== end, 'quiet.from and quiet.to must differ: nothing would ever leave')
  return { from: begin, to: end, zone }
}

/** Reads a time of the day. */
function readMinutes(value: unknown, name: string): number {
  const [, hours, minutes] = typeof value === 'string' ? /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(value) ?? [] : []
  demand(hours !== undefined, `quiet.${name} must be a time such as '22:00'`)
  return Number(hours) * 60 + Number(minutes)
}

/** @returns milliseconds */
function readSeconds(value: unknown, least: number, most: number, name: string): number {
  demand(typeof value === 'number' && value >= least && value <= most, `${name} must be a number of seconds from ${least} to ${most}`)
  return Math.round(value * 1000)
}

/** Reads an address without a star, which would become a pattern if a key has the name among its targets. */
function readChat(word: string): Address | undefined {
  const address = word.includes('*') ? undefined : readAddress(word)
  // An HTTP address is reached by its own name only.
  return address?.platform === httpPlatform ? undefined : address
}

/** Whether both are given and differ. */
function isOther(a: string | undefined, b: string | undefined): boolean {
  return a !== undefined && b !== undefined && a !== b
}

function isWord(value: unknown): value is string | undefined {
  return value === undefined || (typeof value === 'string' && value !== '')
}
