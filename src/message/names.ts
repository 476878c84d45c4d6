import { demand, RelayError } from '../errors'
import { languageNamed, languages } from '../texts/language'
import { quoted } from '../lib/log'
import { isObject, toText, withoutNull, type JsonObject } from '../lib/shape'
import { isSigningSecret } from '../lib/webhook-signature'
import { day, parseDuration } from '../lib/time'
import { either, isSet, mustBe, readList, refuseFields } from '../lib/words'
import { clauses, say, type Text } from '../texts/text'
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
const quietRule = say('object-rule', { name: 'quiet', example: '{from: "22:00", to: "08:00", zone: Asia/Shanghai}' })
const wayRule = say('way-rule', { object: '{url, secret, format}' })

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
): { entries: Map<string, T>, warnings: Text[] } {
  const entries = new Map<string, T>()
  const warnings: Text[] = []
  for (const [written, value] of Object.entries(raw)) {
    const name = toName(written)
    try {
      entries.set(name, parse(name, value))
    } catch (error) {
      entries.delete(name)
      warnings.push(leftOut(setting, name, error))
    }
  }
  return { entries, warnings }
}

function leftOut(setting: string, name: string, error: unknown): Text {
  return clauses(setting, say('left-out', { name: quoted(name) }), RelayError.from(error).said)
}

/**
 * Reads the names of targets. The value of each is a target, a list of targets (or a text with commas), or an object with `to` or
 * `first` and a policy.
 *
 * @returns the valid names, and a warning about each of the others
 */
export function parseNames(raw: JsonObject, isCalled: Known['isCalled'] = () => false): { names: Map<string, Named>, warnings: Text[] } {
  const { entries: names, warnings } = parseEntries('targets', raw, parseNamed)
  // A name may refer to one after it, and to none that is left out.
  for (let before = -1; before !== warnings.length;) {
    before = warnings.length
    for (const [name, named] of names) {
      try {
        demandKnown(name, named, { names, isCalled })
      } catch (error) {
        names.delete(name)
        warnings.push(leftOut('targets', name, error))
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
  demand(isWord(given), mustBe('platform', say('text')))
  const selfId = Number.isSafeInteger(account) ? String(account) : account
  demand(isWord(selfId), mustBe('selfId', say('text')))
  const language = languageNamed(lang)
  demand(lang === undefined || language !== undefined, mustBe('lang', either(...languages)))
  demand(first === undefined || to === undefined, say('to-or-first'))
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
    demand(given === undefined && selfId === undefined, say('first-has-bots'))
    return build({ addresses: [], isList: false, first: parseWays(first, after, whenUnknown) })
  }
  demand(after === undefined && whenUnknown === undefined, say('only-with-first'))
  const platform = given && toPlatform(given)
  const words = readList(to) ?? []
  const addresses = words.flatMap(word => {
    const address = readChat(word)
    if (!address || isOther(address.platform, platform) || isOther(address.selfId, selfId)) return []
    return { ...address, ...platform !== undefined && { platform }, ...selfId !== undefined && { selfId } }
  })
  const isComplete = words.length > 0 && addresses.length === words.length
  demand(isComplete, say('to-rule'))
  return build({ addresses, isList: Array.isArray(to) || addresses.length > 1 })
}

function parseWays(first: unknown, after: unknown, whenUnknown: unknown): Ways {
  const values: unknown[] = typeof first === 'string' ? first.split(',').map(word => word.trim()) : Array.isArray(first) ? first : []
  demand(values.length > 0 && values.length <= mostWays, say('first-rule', { most: mostWays }))
  demand(!isSet(whenUnknown) || whenUnknown === 'stop' || whenUnknown === 'next', mustBe('when_unknown', either('stop', 'next')))
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
  demand(isWord(secret) && (secret === undefined || isSigningSecret(secret)), say('secret-rule'))
  demand(!isSet(format) || format === 'apprise', say('format-rule'))
  return { url, ...secret !== undefined && { secret }, ...isSet(format) && { format: 'apprise' } }
}

/** The people and rotas that a name calls, or lets act. */
export function callsOf({ mention, ack }: Named): string[] {
  return [...wordsOf(mention), ...ack?.who ?? [], ...ack?.escalate.flatMap(step => step.mention) ?? []]
}

/** Reads the rules for incidents. */
function parseAck(value: unknown): Ack {
  demand(isObject(value), say('object-rule', { name: 'ack', example: '{from: warning, escalate: [{after: 5m, mention: all}]}' }))
  const { from = 'warning', who, remind, escalate = [], ...others } = withoutNull(value)
  refuseFields(say('rules-of-ack'), Object.keys(others))
  const least = severities.find(each => each === from)
  demand(least !== undefined && least !== 'ok', mustBe('ack.from', either('critical', 'warning', 'info')))
  demand(Array.isArray(escalate) && escalate.length <= mostSteps, say('steps-rule', { most: mostSteps }))
  const people = who === undefined ? undefined : parsePeople(who, 'ack.who')
  demand(!people || !callsAll(people), say('who-rule'))
  const last = escalate.length - 1
  const steps = Array.from<unknown, Step>(escalate, (step, index) => parseStep(step, `ack.escalate[${index}]`, index === last))
  for (const [index, { after }] of steps.entries()) {
    demand(after > (steps[index - 1]?.after ?? 0), say('after-rule', { field: `ack.escalate[${index}].after` }))
  }
  return {
    from: least, escalate: steps, ...people && { who: people },
    ...remind !== undefined && { remind: readDuration(remind, 'ack.remind') },
  }
}

function parseStep(value: unknown, field: string, isLast: boolean): Step {
  demand(isObject(value), say('object-rule', { name: field, example: '{after: 5m, mention: all}' }))
  const { after, mention = 'none', to, again, ...others } = withoutNull(value)
  refuseFields(say('steps-of-ack'), Object.keys(others))
  const words = parseCalled(mention, `${field}.mention`)
  const address = typeof to === 'string' ? readChat(to) : undefined
  const target = address ? writeAddress(address) : to === undefined ? to : toName(toText(to))
  demand(target === undefined || address !== undefined || isName(target), say('step-to-rule', { field: `${field}.to` }))
  demand(words.length > 0 || target !== undefined, say('empty-step', { field }))
  demand(again === undefined || isLast, say('only-last-step', { field: `${field}.again` }))
  return {
    after: readDuration(after, `${field}.after`), mention: words, ...target !== undefined && { to: target },
    ...again !== undefined && { again: readDuration(again, `${field}.again`) },
  }
}

/** @returns milliseconds */
function readDuration(value: unknown, field: string): number {
  const duration = parseDuration(value) ?? 0
  demand(duration > 0 && duration <= longestWait, say('duration-rule', { field }))
  return duration
}

/** Checks that what a name refers to is there. Each name among its ways has to lead to one chat, which rules out circles, too. */
function demandKnown(name: string, { first, mention, ack }: Named, { names, isCalled }: Known): void {
  for (const way of first?.ways ?? []) {
    if ('name' in way) demand(chatOf(way.name, names) !== undefined, say('way-to-one-chat', { name: JSON.stringify(way.name) }))
  }
  demandCalled(wordsOf(mention), 'mention', isCalled)
  demandCalled(ack?.who ?? [], 'ack.who', isCalled)
  for (const [index, step] of ack?.escalate.entries() ?? []) {
    demandCalled(step.mention, `ack.escalate[${index}].mention`, isCalled)
    if (step.to === undefined || readAddress(step.to)) continue
    const field = `ack.escalate[${index}].to`
    demand(!escalatesTo(name, step.to, names), say('leads-back', { field, name: JSON.stringify(step.to) }))
    demand(names.get(step.to) !== undefined, say('no-name', { field, name: JSON.stringify(step.to) }))
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
  demand(typeof zone === 'string' && isZone(zone), say('zone-rule', { field: 'quiet.zone' }))
  const [begin, end] = [readMinutes(from, 'from'), readMinutes(to, 'to')]
  demand(begin !== end, say('always-quiet'))
  return { from: begin, to: end, zone }
}

/** Reads a time of the day. */
function readMinutes(value: unknown, name: string): number {
  const [, hours, minutes] = typeof value === 'string' ? /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(value) ?? [] : []
  demand(hours !== undefined, say('time-of-day-rule', { field: `quiet.${name}` }))
  return Number(hours) * 60 + Number(minutes)
}

/** @returns milliseconds */
function readSeconds(value: unknown, least: number, most: number, name: string): number {
  demand(typeof value === 'number' && value >= least && value <= most, say('seconds-rule', { name, least, most }))
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
