import { namesSecret } from '../src/lib/words'
import { call, type Method } from './api'
import { isFields, listOf, numberOf, textOf, textsOf, wordsOf, type Fields } from './fields'

/** A key as `GET /keys` shows it. */
function readKey(fields: Fields) {
  return {
    name: textOf(fields.name),
    /** Absent if every target is allowed. */
    targets: Array.isArray(fields.targets) ? textsOf(fields.targets) : undefined,
    /** The only sources that it can send through; empty if it has no such limit. */
    sources: textsOf(fields.sources),
    allow: textsOf(fields.allow),
    /** Absent if the key does not expire, like the later times. */
    expires: textOf(fields.expires) || undefined,
    /** In messages a minute; absent without a limit. */
    rate: fields.rate === undefined ? undefined : numberOf(fields.rate),
    /** The addresses that may use the key; empty if all may. */
    from: textsOf(fields.from),
    origin: originOf(fields),
    lastUsedAt: textOf(fields.last_used_at) || undefined,
  }
}

export type Key = ReturnType<typeof readKey>

/** The form of a new key. */
export interface KeyWish {
  name: string
  /** Empty if every target is allowed. */
  targets: readonly string[]
  /** Comma-separated sources; empty if the key is not limited to any. */
  sources: string
  allow: readonly string[]
  /** A date; empty if the key does not expire. */
  expires: string
  /** Empty without a limit. */
  rate: string
  /** Comma-separated addresses; empty if all are allowed. */
  from: string
  /** Whether the key also has a secret for signatures. */
  signs: boolean
}

/** The secret values of a key, which the relay shows only once. */
function readFreshKey({ name, key, secret }: Fields) {
  return {
    name: textOf(name),
    key: textOf(key),
    /** Empty for a key without signatures. */
    secret: textOf(secret),
  }
}

export type FreshKey = ReturnType<typeof readFreshKey>

/** A name for one or more targets. */
function readTarget(fields: Fields) {
  return {
    name: textOf(fields.name),
    /** Full addresses; with a bot, such as `onebot:10000:group:1`. */
    to: textsOf(fields.to),
    /** The ways, in their order, which replace `to`; empty if there are none. */
    first: Array.isArray(fields.first) ? fields.first.map(readWay) : [],
    /** Names among the ways that no longer stand for a single chat. */
    skipped: textsOf(fields.skipped),
    /** How long a way may delay a message, in seconds, as a string. */
    after: textOf(fields.after),
    /** Whether the next way follows an unanswered one. */
    goesOnUnknown: fields.when_unknown === 'next',
    /** The shortest interval between two messages, in seconds, as a string; empty for none. */
    digest: textOf(fields.digest),
    /** The quiet hours, when only urgent messages are sent; absent for none. */
    quiet: readQuiet(fields.quiet),
    /** Empty for the language of the settings. */
    lang: textOf(fields.lang),
    mention: readMentions(fields.mention),
    /** The rules of its incidents; absent if it has none. */
    ack: isFields(fields.ack) ? readAck(fields.ack) : undefined,
    origin: originOf(fields),
  }
}

export type Target = ReturnType<typeof readTarget>

/** The words of `mention`, by severity. */
export function readMentions(mention: unknown): Record<Level, string[]> {
  const wordsFor = (level: Level): string[] => {
    return [isFields(mention) ? mention[level] : mention].flat().map(textOf).filter(word => word && word !== 'none')
  }
  return { critical: wordsFor('critical'), warning: wordsFor('warning'), info: wordsFor('info') }
}

export const levels = ['critical', 'warning', 'info'] as const
export type Level = typeof levels[number]

function readAck(fields: Fields) {
  return {
    from: levels.find(level => level === fields.from) ?? 'warning', who: textsOf(fields.who), remind: writeSeconds(fields.remind),
    steps: listOf(fields.escalate).map(readStep),
  }
}

/** A step while nobody takes an incident. Empty texts are absent. */
export function readStep({ after, mention, to, again }: Fields) {
  return { after: writeSeconds(after), mention: [mention].flat().map(textOf).filter(Boolean), to: textOf(to), again: writeSeconds(again) }
}

export type Ack = ReturnType<typeof readAck>

/** A duration in the largest unit that it is a whole number of, such as `4h`. @param value in seconds */
export function writeSeconds(value: unknown): string {
  if (typeof value !== 'number') return textOf(value)
  const [unit, length] = ([['w', 604_800], ['d', 86_400], ['h', 3600], ['m', 60]] as const).find(([, each]) => value % each === 0) ?? ['s', 1]
  return `${value / length}${unit}`
}

/** A way of a target. */
function readWay(way: unknown) {
  const { url, secret, format } = isFields(way) ? way : { url: way }
  return {
    /** An address, a name or an HTTP address. */
    address: textOf(url),
    /** For an HTTP address: a new secret for signatures; empty to keep the present one, or none. */
    secret: '',
    hasSecret: secret === true,
    /** For an HTTP address: `apprise`, or empty for the relay's own JSON. */
    format: textOf(format),
  }
}

export type Way = ReturnType<typeof readWay>

/** Quiet hours: times of day such as `22:00`, and the name of their time zone. */
function readQuiet(quiet: unknown) {
  return isFields(quiet) ? { from: textOf(quiet.from), to: textOf(quiet.to), zone: textOf(quiet.zone) } : undefined
}

export type Quiet = NonNullable<ReturnType<typeof readQuiet>>

/** Whether a key or target comes from the settings, which this page cannot change, or was created at runtime. */
export function originOf({ source }: Fields): 'settings' | 'made' {
  return source === 'made' ? 'made' : 'settings'
}

export const isHttp = ({ address }: Pick<Way, 'address'>): boolean => /^https?:/i.test(address)

/** All addresses of a target. */
export function placesOf({ to, first }: Pick<Target, 'to' | 'first'>): string[] {
  return first.length > 0 ? first.map(({ address }) => address) : to
}

/** The requested value, or the reason for its absence. */
export type Result<T> = { value: T } | { problem: string }

export async function ask<T>(read: (data: Fields) => T, method: Method, path: string, body?: object): Promise<Result<T>> {
  const { isRight, data, msg } = await call(method, path, body && { body: JSON.stringify(body) })
  return isRight ? { value: read(data) } : { problem: msg }
}

/** For requests whose answer has no useful content. */
export const change = (method: Method, path: string, body?: object): Promise<Result<undefined>> => ask(() => undefined, method, path, body)
export const pathOf = (kind: 'keys' | 'targets' | 'templates' | 'people' | 'rotas' | 'beats', name: string): string => `/${kind}/${encodeURIComponent(name)}`

export const loadKeys = (): Promise<Result<Key[]>> => ask(({ keys }) => listOf(keys).map(readKey), 'GET', '/keys')

export function makeKey({ name, targets, sources, allow, expires, rate, from, signs }: KeyWish): Promise<Result<FreshKey>> {
  const [addresses, bound] = [wordsOf(from), wordsOf(sources)]
  return ask(readFreshKey, 'POST', '/keys', {
    name: name.trim(), allow, ...targets.length > 0 && { targets }, ...expires && { expires }, ...rate && { rate: Number(rate) },
    ...bound.length > 0 && allow.includes('hooks') && { sources: bound }, ...addresses.length > 0 && { from: addresses }, ...signs && allow.includes('hooks') && { signs },
  })
}

/** @param grace how many seconds the old key stays valid */
export function rotateKey(name: string, grace: number): Promise<Result<FreshKey>> {
  return ask(readFreshKey, 'POST', `${pathOf('keys', name)}/rotate`, { grace })
}

export const revokeKey = (name: string): Promise<Result<undefined>> => change('DELETE', pathOf('keys', name))

export const loadTargets = (): Promise<Result<Target[]>> => ask(({ targets }) => listOf(targets).map(readTarget), 'GET', '/targets')

/**
 * Creates or changes a target.
 *
 * @param bot the only bot that may send to the target, as `platform:id`; empty for any
 */
export function saveTarget(
  { name, to, first, after, goesOnUnknown, digest, quiet, lang, mention, ack }: Omit<Target, 'origin' | 'skipped'>, bot: string,
): Promise<Result<undefined>> {
  const at = bot.indexOf(':')
  const body = {
    ...first.length > 0
      ? { first: first.map(writeWay), ...after && { after: Number(after) }, ...goesOnUnknown && { when_unknown: 'next' } }
      : { to, ...bot && { platform: bot.slice(0, at), selfId: bot.slice(at + 1) } },
    ...digest && { digest: Number(digest) }, ...quiet && { quiet }, ...lang && { lang },
    mention: Object.fromEntries(Object.entries(mention).filter(([, words]) => words.length > 0)), ...ack && { ack: writeAck(ack) },
  }
  return change('PUT', pathOf('targets', name), body)
}

function writeAck({ from, who, remind, steps }: Ack): object {
  return {
    from, ...who.length > 0 && { who }, ...remind && { remind },
    escalate: steps.map(({ after, mention, to, again }) => ({
      after, ...mention.length > 0 && { mention }, ...to && { to }, ...again && { again },
    })),
  }
}

function writeWay(way: Way): unknown {
  const { address, secret, hasSecret, format } = way
  if (!isHttp(way)) return address
  return { url: address, ...secret ? { secret } : hasSecret && { secret: true }, ...format && { format } }
}

export const removeTarget = (name: string): Promise<Result<undefined>> => change('DELETE', pathOf('targets', name))

/** The template of a source: the operator's own, or the built-in one. */
export interface Template {
  text: string
  isOwn: boolean
}

export function loadTemplate(name: string): Promise<Result<Template>> {
  return ask(({ template, source }) => ({ text: textOf(template), isOwn: source === 'own' }), 'GET', pathOf('templates', name))
}

export function saveTemplate(name: string, template: string): Promise<Result<undefined>> {
  return change('PUT', pathOf('templates', name), { template })
}

/** Restores the built-in template. */
export const resetTemplate = (name: string): Promise<Result<undefined>> => change('DELETE', pathOf('templates', name))

/** The message that a template renders from a payload. */
export type Rendering = { text: string, pictures: string[] } | { skipped: string }

/** Renders a payload with a template. Nothing is sent. */
export function previewTemplate(name: string, template: string, payload: Fields, event: string): Promise<Result<Rendering>> {
  return ask(({ skipped, text, pictures }) => {
    return skipped === undefined ? { text: textOf(text), pictures: textsOf(pictures) } : { skipped: textOf(skipped) }
  }, 'POST', `${pathOf('templates', name)}/preview`, { template, payload, ...event && { event } })
}

/** A payload; `undefined` if the text is not a JSON object. */
export function parsePayload(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isFields(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The most fields of a template to begin with. */
const maxFields = 10

/** A template to begin with: the first fields of a payload. Empty if the payload has none that Liquid can name. */
export function templateFor(payload: Fields): string {
  return linesFor(payload, '').slice(0, maxFields).join('\n')
}

function linesFor(payload: Fields, path: string): string[] {
  return Object.entries(payload).flatMap(([key, value]) => {
    if (!/^[\p{L}_][\p{L}\p{N}_-]*$/u.test(key) || namesSecret(key)) return []
    const name = path + key
    if (isFields(value)) return linesFor(value, `${name}.`)
    return typeof value === 'object' || value === '' ? [] : [`${name}: {{ ${name} }}`]
  })
}
