import { Schema } from 'koishi'
import { parseEndpoint } from '../lib/endpoint'
import { parseJson } from '../lib/json'
import { languages, type Language } from '../texts/language'
import { isObject, type JsonObject } from '../lib/shape'
import { isSigningSecret } from '../lib/webhook-signature'
import { either, readList } from '../lib/words'
import { toPlatform } from '../message/target'
import { say, type Text } from '../texts/text'

/** The kind of a setting: how its values are parsed, described, edited on the config page, and shown. */
export interface Kind<T> {
  /** Parses a raw value from koishi.yml or the environment; `undefined` if it is malformed. */
  parse: (value: unknown) => T | undefined
  /** The expected value, for the warning about a malformed one. */
  rule: Text
  /** The control on the config page, without a default. */
  control: Schema
  /** Further forms in koishi.yml, each transformed to the form of the control. */
  others?: readonly Schema[]
  /** The part of a value that the log and the config page may show; `undefined` for none. */
  show: (value: T) => unknown
}

function kind<T>(rule: Text, control: Schema, parse: Kind<T>['parse'], show: Kind<T>['show'] = value => value): Kind<T> {
  return { parse, rule, control, show }
}

const readText = (value: unknown): string | undefined => typeof value === 'string' ? value.trim() : undefined
const hide = (): undefined => undefined

/** Text without outer white space. */
export const text = kind(say('text'), Schema.string(), readText)

/** Text exactly as it is written. */
export const verbatim = kind(say('text'), Schema.string(), value => typeof value === 'string' ? value : undefined)

/** Text that is never shown. It has no default on the config page, because the page would send it to the browser. */
export const secret = kind(say('text'), Schema.string().role('secret'), readText, hide)

/** A secret for signatures. `undefined` stands for a malformed one: the relay then sends nothing that needs a signature. */
export const signingSecret = kind<string | undefined>(say('rule-signing-secret'), Schema.string().role('secret'), value => {
  const key = readText(value)
  return key !== undefined && isSigningSecret(key) ? key : undefined
}, hide)

/** A route prefix: `relay`, `/relay` and `/relay/` all become `/relay`. */
export const routePrefix = kind(say('rule-path'), Schema.string(), value => {
  const segments = readText(value)?.split('/').filter(Boolean)
  // Only characters without a meaning for the router: `:`, `*` and parentheses are patterns there. Clients resolve `.` and `..`.
  if (segments?.every(segment => /^(?!\.\.?$)[\w.~-]+$/.test(segment))) return segments.map(segment => `/${segment}`).join('')
})

function readUrl(value: unknown): string | undefined {
  const url = readText(value) ?? ''
  return /^https?:\/\//i.test(url) && URL.canParse(url) ? url : undefined
}

/** The origin of an address. The rest is not shown, because the path and query of an incoming webhook are its secret. */
const originOf = (address: string): string | undefined => parseEndpoint(address)?.origin

/** An http(s) address to which the relay posts. */
export const httpUrl = kind(say('rule-address'), Schema.string().role('link'), readUrl, originOf)

/** The receivers of alerts, in order of preference: each is a list of targets or names with commas, or an http(s) address. */
export const recipients = kind<readonly string[]>(say('rule-texts'), Schema.array(String).role('table'), value => {
  const text = readText(value)
  const written = text?.startsWith('[') ? readJson(text) : text ?? value
  const texts = Array.isArray(written) ? written.map(readText) : [readText(written)]
  return texts.every(each => each !== undefined) ? texts.filter(Boolean) : undefined
}, values => {
  const shown = values.map(value => value.includes('://') ? originOf(value) : value)
  return shown.includes(undefined) ? undefined : shown
})

/** An http(s) address for appending paths, without a slash at its end. */
export const baseUrl = kind(say('rule-base-address'), Schema.string().role('link'), value => {
  const url = readUrl(value)
  return url === undefined || /[?#]/.test(url) ? undefined : url.replace(/\/+$/, '')
}, address => {
  if (!URL.canParse(address)) return address
  const { origin, pathname, username, password } = new URL(address)
  return username || password ? origin + pathname : address
})

/** Yes or no, in one of the usual words. */
export const flag = kind(either('true', 'false'), Schema.boolean(), value => {
  const word = String(value).trim().toLowerCase()
  if (['true', '1', 'yes', 'on'].includes(word)) return true
  if (['false', '0', 'no', 'off'].includes(word)) return false
})

/** One flag for all platforms, or a dictionary with flags of some platforms. */
export const platformFlags = kind<boolean | Readonly<Record<string, boolean>>>(
  say('rule-platform-flags'), Schema.union([Schema.boolean(), Schema.dict(Schema.boolean())]), value => {
    const parsed = typeof value === 'string' && value.trim().startsWith('{') ? readJson(value) : value
    if (!isObject(parsed)) return flag.parse(parsed)
    const flags = Object.entries(parsed).map(([platform, each]) => [toPlatform(platform), flag.parse(each)] as const)
    if (flags.every(([, each]) => each !== undefined)) return Object.fromEntries(flags.map(([platform, each]) => [platform, each === true]))
  },
)

/** One of a few words, in any case. */
export function oneOf<const T extends string>(...words: readonly T[]): Kind<T> {
  return kind(say('one-of', { choices: words }), Schema.union(words), value => words.find(word => readText(value)?.toLowerCase() === word))
}

/** One of a few words, in any case; empty for none. */
export function choice<const T extends string>(...words: readonly T[]): Kind<T | ''> {
  return { ...oneOf<T | ''>(...words), show: value => value || undefined }
}

/** The language of texts for chats. Empty for that of Koishi, also if the variable `LANGUAGE` is the system's, such as `en_US:en`. */
export const language = kind<Language | ''>(either(...languages), Schema.union(languages), value => {
  const text = readText(value)?.toLowerCase()
  return text && (languages.find(each => each.toLowerCase() === text) ?? '')
}, value => value || undefined)

/** A list of words, or a text of words with commas. */
export const list = kind(say('rule-words'), Schema.array(String).role('table'), readList)

/** Accounts, each as `platform:ID`. */
export const accounts = kind<readonly string[]>(say('rule-accounts'), Schema.array(String).role('table'), value => {
  const parts = readList(value)?.map(each => /^([^:\s]+):(\S+)$/.exec(each))
  return parts?.every(each => each !== null) ? parts.map(([, platform = '', id = '']) => `${toPlatform(platform)}:${id}`) : undefined
})

/** Keys of callers, parsed one by one later. Never shown. */
export const keyTable = kind<readonly unknown[]>(say('rule-list'), Schema.array(Schema.object({
  name: Schema.string(),
  key: Schema.string().role('secret'),
  secret: Schema.string().role('secret'),
  targets: Schema.string(),
  sources: Schema.string(),
  allow: Schema.string(),
  expires: Schema.string(),
  rate: Schema.natural(),
  from: Schema.string(),
})).role('table'), readArray, hide)

/** Commands, parsed one by one later. Only their names are shown, because their addresses may contain secrets. */
export const commandTable = kind<readonly unknown[] | undefined>(say('rule-list'), Schema.array(Schema.object({
  name: Schema.string(),
  groups: Schema.string(),
  users: Schema.string(),
  callback: Schema.string(),
  help: Schema.string(),
})).role('table'), readArray, values => values?.map(entry => isObject(entry) ? entry.name : undefined))

/** Names of targets, parsed one by one later. If any has an HTTP address, only the names are shown: addresses may contain secrets. */
export const targetTable = kind<JsonObject>(say('rule-dictionary'), Schema.dict(String).role('table'), readDictionary,
  value => JSON.stringify(value).includes('://') ? Object.keys(value) : value)

/** Entries by their names, parsed one by one later. Only the names are shown. */
export const dictionary = kind<JsonObject>(say('rule-dictionary'), Schema.any(), readDictionary, Object.keys)

/** Parses a text as JSON, `undefined` if it is malformed. Returns any other value as it is. */
function readJson(value: unknown): unknown {
  return typeof value === 'string' ? parseJson(value) : value
}

function readDictionary(value: unknown): JsonObject | undefined {
  const parsed = readJson(value)
  return isObject(parsed) ? parsed : undefined
}

function readArray(value: unknown): readonly unknown[] | undefined {
  const parsed = readJson(value)
  return Array.isArray(parsed) ? parsed : undefined
}

const numeral = String.raw`[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?`
const numberPattern = new RegExp(`^\\s*${numeral}\\s*$`, 'i')

function readNumber(value: unknown, min: number, max = Infinity): number | undefined {
  const number = typeof value === 'string' && numberPattern.test(value) ? Number(value) : value
  return typeof number === 'number' && number >= min && number <= max ? number : undefined
}

function readInteger(value: unknown, min: number, max = Number.MAX_SAFE_INTEGER): number | undefined {
  const number = readNumber(value, min, max)
  return Number.isSafeInteger(number) ? number : undefined
}

/** A whole number between two bounds, both included. */
export function integer(min: number, max?: number): Kind<number> {
  const control = Schema.natural().min(min)
  const rule = max === undefined ? say('rule-whole-least', { min }) : say('rule-whole', { min, max })
  return kind(rule, max === undefined ? control : control.max(max), value => readInteger(value, min, max))
}

/** The longest wait of a Node.js timer, in seconds. */
const longestWait = Math.floor((2 ** 31 - 1) / 1000)

/** A time in seconds for a timer, including fractions. The shortest wait of a timer is a millisecond. */
export function seconds(min = 0.001): Kind<number> {
  const control = Schema.number().min(min).max(longestWait)
  return kind(say('rule-seconds', { min, max: longestWait }), control, value => readNumber(value, min, longestWait))
}

const sizePattern = new RegExp(`^\\s*(${numeral})\\s*(?:B|([KMG])(?:i?B)?)?\\s*$`, 'i')
const sizeUnits = ['', 'K', 'M', 'G']

/**
 * A size in bytes between two bounds, both included: a whole number, or a text such as `20MB`, `1.5 GiB` or `512k`. KB and KiB both mean
 * powers of 1024. A fraction of a byte is rounded down with a unit, and malformed without one.
 */
export function size(min: number, max?: number): Kind<number> {
  const least = formatSize(min)
  const rule = max === undefined ? say('rule-size-least', { least }) : say('rule-size', { least, most: formatSize(max) })
  const parse = (value: unknown): number | undefined => {
    if (typeof value !== 'string') return readInteger(value, min, max)
    const [, number, unit = ''] = sizePattern.exec(value) ?? []
    const bytes = Number(number) * 1024 ** sizeUnits.indexOf(unit.toUpperCase())
    return readInteger(unit ? Math.floor(bytes) : bytes, min, max)
  }
  const fromNumber = Schema.transform(Schema.number(), bytes => String(bytes), true)
  return { ...kind(rule, Schema.string().pattern(sizePattern), parse, formatSize), others: [fromNumber] }
}

/** Bytes in the largest unit without a fraction: `20 MB`, `1234 B`. */
function formatSize(bytes: number): string {
  let power = 0
  while (bytes > 0 && power < sizeUnits.length - 1 && bytes % 1024 ** (power + 1) === 0) power++
  return `${bytes / 1024 ** power} ${sizeUnits[power] ?? ''}B`
}
