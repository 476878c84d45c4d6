import { demand, RelayError } from '../errors'
import { languages } from '../texts/language'
import { quoted } from '../lib/log'
import { isObject, toText, withoutNull, type JsonObject } from '../lib/shape'
import { isSigningSecret } from '../lib/webhook-signature'
import { day, parseDuration } from '../lib/time'
import { isSet, readList, refuseFields } from '../lib/words'
import { callsAll, demandCalled, parseCalled, parseMentions, parsePeople, wordsOf } from './mentions'
import {
  httpPlatform, severities, type Ack, type Address, type HttpWay, type Step, type Ways, type Named, type Quiet, type Way, type TargetNames,
} from './model'
import { isZone, ownZone } from './quiet'
import { chatOf, isName, nameRule, readAddress, toName, toPlatform, writeAddress } from './target'

/** The longest digest, and the longest wait for a way, in seconds. */
const longestDigest = 3600
const longestAfter = 86_400
const usualAfter = 120
const mostWays = 20
const mostSteps = 20
/** The longest duration of a rule for incidents, in milliseconds. */
const longestWait = 30 * day
const quietRule = 'quiet must be an object such as {from: "22:00", to: "08:00", zone: Asia/Shanghai}'
const wayRule = 'an address of first must be group:<id> or private:<id>, with platform and account in front or not, a name, an http:// or https:// address, or {url, secret, format}'

/** What a name may refer to. */
export interface Known {
  /** Other names. */
  names: TargetNames
  /** Whether a word means somebody who can be called by `@`: a person or a rota. */
  isCalled: (word: string) => boolean
}

/**
 * Reads a dictionary of the settings.
 *
 * @returns the valid entries, and a warning about each of the others
 */
export function parseEntries<T>(
  setting: string, raw: JsonObject, parse: (name: string, value: unknown) => T,
): { entries: Map<string, T>, warnings: string[] } {
  const entries = new Map<string, T>()
  const warnings: string[] = []
  for (const [written, value] of Object.entries(raw)) {
    const name = toName(written)
    try {
      entries.set(name, parse(name, value))
    } catch (error) {
      entries.delete(name)
      warnings.push(`${setting}: ${quoted(name)} is left out: ${RelayError.from(error).message}`)
    }
  }
  return { entries, warnings }
}

/**
 * Reads the names of targets. The value of each is a target, a list of targets (or a text with commas), or an object with `to` or
 * `first` and a policy.
 *
 * @returns the valid names, and a warning about each of the others
 */
export function parseNames(raw: JsonObject, isCalled: Known['isCalled'] = () => false): { names: Map<string, Named>, warnings: string[] } {
  const { entries: names, warnings } = parseEntries('targets', raw, parseNamed)
  // A name may refer to one after it, and to none that is left out.
  for (let before = -1; before !== warnings.length;) {
    before = warnings.length
    for (const [name, named] of names) {
      try {
        demandKnown(name, named, { names, isCalled })
      } catch (error) {
        names.delete(name)
        warnings.push(`targets: ${quoted(name)} is left out: ${RelayError.from(error).message}`)
      }
    }
  }
  return { names, warnings }
}

/**
 * Reads the value of a name.
 *
 * @param known what it may refer to; without it, this is not checked
 * @throws RelayError `bad-request`, which names the field
 */
export function parseNamed(name: string, value: unknown, known?: Known): Named {
  demand(isName(name), nameRule)
  const {
    to, first, after, when_unknown: whenUnknown, platform: given, selfId: accountId, self_id: account = accountId, lang, digest, quiet,
    mention: called, ack: rule, ...others
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
  const mentions = called === undefined ? {} : parseMentions(called)
  const mention = wordsOf(mentions).length > 0 && { mention: mentions }
  const ack = rule !== undefined && { ack: parseAck(rule) }
  const policy = {
    name, ...spacing > 0 && { digest: spacing }, ...hours && { quiet: hours }, ...language && { lang: language },
    ...ack && { durable: true },
  }
  const hasPolicy = spacing > 0 || hours !== undefined || first !== undefined || mention || ack
  const rules = { ...language && { lang: language }, ...hasPolicy && { policy }, ...mention, ...ack }
  const build = (reach: Pick<Named, 'addresses' | 'isList' | 'first'>): Named => {
    const named = { ...reach, ...rules }
    if (known) demandKnown(name, named, known)
    return named
  }
  if (first !== undefined) {
    demand(given === undefined && selfId === undefined, 'with first, each address names its platform and account itself: leave out platform and selfId')
    return build({ addresses: [], isList: false, first: parseWays(first, after, whenUnknown) })
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
  return build({ addresses, isList: Array.isArray(to) || addresses.length > 1 })
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

/** The people and rotas that a name calls, or lets act. */
export function callsOf({ mention, ack }: Named): string[] {
  return [...wordsOf(mention), ...ack?.who ?? [], ...ack?.escalate.flatMap(step => step.mention) ?? []]
}

/** Reads the rules for incidents. */
function parseAck(value: unknown): Ack {
  demand(isObject(value), 'ack must be an object such as {from: warning, escalate: [{after: 5m, mention: all}]}')
  const { from = 'warning', who, remind, escalate = [], ...others } = withoutNull(value)
  refuseFields('rules of ack', Object.keys(others))
  const least = severities.find(each => each === from)
  demand(least !== undefined && least !== 'ok', 'ack.from must be critical, warning or info')
  demand(Array.isArray(escalate) && escalate.length <= mostSteps, `ack.escalate must be a list of at most ${mostSteps} steps`)
  const people = who === undefined ? undefined : parsePeople(who, 'ack.who')
  demand(!people || !callsAll(people), 'ack.who must be people and rotas: leave it out to let everybody act')
  const last = escalate.length - 1
  const steps = Array.from<unknown, Step>(escalate, (step, index) => parseStep(step, `ack.escalate[${index}]`, index === last))
  for (const [index, { after }] of steps.entries()) {
    demand(after > (steps[index - 1]?.after ?? 0), `ack.escalate[${index}].after must be later than the step before: it counts from the first message`)
  }
  return {
    from: least, escalate: steps, ...people && { who: people },
    ...remind !== undefined && { remind: readDuration(remind, 'ack.remind') },
  }
}

function parseStep(value: unknown, field: string, isLast: boolean): Step {
  demand(isObject(value), `${field} must be an object such as {after: 5m, mention: all}`)
  const { after, mention = 'none', to, again, ...others } = withoutNull(value)
  refuseFields('steps of ack.escalate', Object.keys(others))
  const words = parseCalled(mention, `${field}.mention`)
  const address = typeof to === 'string' ? readChat(to) : undefined
  const target = address ? writeAddress(address) : to === undefined ? to : toName(toText(to))
  demand(target === undefined || address !== undefined || isName(target), `${field}.to must be group:<id> or private:<id>, or a name`)
  demand(words.length > 0 || target !== undefined, `${field} must have mention or to`)
  demand(again === undefined || isLast, `${field}.again goes with the last step only`)
  return {
    after: readDuration(after, `${field}.after`), mention: words, ...target !== undefined && { to: target },
    ...again !== undefined && { again: readDuration(again, `${field}.again`) },
  }
}

/** @returns milliseconds */
function readDuration(value: unknown, field: string): number {
  const duration = parseDuration(value) ?? 0
  demand(duration > 0 && duration <= longestWait, `${field} must be a duration of at most 30d: seconds, or such as 90s, 5m, 4h or 1d`)
  return duration
}

/** Checks that what a name refers to is there. Each name among its ways has to lead to one chat, which rules out circles, too. */
function demandKnown(name: string, { first, mention, ack }: Named, { names, isCalled }: Known): void {
  for (const way of first?.ways ?? []) {
    if ('name' in way) demand(chatOf(way.name, names) !== undefined, `first: ${JSON.stringify(way.name)} must be a name that leads to one chat`)
  }
  demandCalled(wordsOf(mention), 'mention', isCalled)
  demandCalled(ack?.who ?? [], 'ack.who', isCalled)
  for (const [index, step] of ack?.escalate.entries() ?? []) {
    demandCalled(step.mention, `ack.escalate[${index}].mention`, isCalled)
    if (step.to === undefined || readAddress(step.to)) continue
    const field = `ack.escalate[${index}].to`
    demand(!escalatesTo(name, step.to, names), `${field}: ${JSON.stringify(step.to)} leads back to this name`)
    demand(names.get(step.to) !== undefined, `${field}: there is no name ${JSON.stringify(step.to)}`)
  }
}

/** Whether the steps from a name on lead to another one. */
function escalatesTo(name: string, from: string, names: TargetNames, seen = new Set<string>()): boolean {
  if (from === name) return true
  if (seen.has(from)) return false
  seen.add(from)
  return names.get(from)?.ack?.escalate.some(({ to }) => to !== undefined && escalatesTo(name, to, names, seen)) ?? false
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
