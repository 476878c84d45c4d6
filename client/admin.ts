import { namesSecret } from '../src/lib/words'
import { call, type Method } from './api'
import { isFields, listOf, numberOf, textOf, textsOf, wordsOf, type Fields } from './fields'

/** A key as `GET /keys` shows it. */
function readKey(fields: Fields) {
  return {
    name: textOf(fields.name),
    /** Absent if every target is allowed. */
    targets: Array.isArray(fields.targets) ? textsOf(fields.targets) : undefined,
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
    origin: originOf(fields),
  }
}

export type Target = ReturnType<typeof readTarget>

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
function originOf({ source }: Fields): 'settings' | 'made' {
  return source === 'made' ? 'made' : 'settings'
}

export const isHttp = ({ address }: Pick<Way, 'address'>): boolean => /^https?:/i.test(address)

/** All addresses of a target. */
export function placesOf({ to, first }: Pick<Target, 'to' | 'first'>): string[] {
  return first.length > 0 ? first.map(({ address }) => address) : to
}

/** The requested value, or the reason for its absence. */
export type Result<T> = { value: T } | { problem: string }

async function ask<T>(read: (data: Fields) => T, method: Method, path: string, body?: object): Promise<Result<T>> {
  const { isRight, data, msg } = await call(method, path, body && { body: JSON.stringify(body) })
  return isRight ? { value: read(data) } : { problem: msg }
}

/** For requests whose answer has no useful content. */
const change = (method: Method, path: string, body?: object): Promise<Result<undefined>> => ask(() => undefined, method, path, body)
const pathOf = (kind: 'keys' | 'targets' | 'templates', name: string): string => `/${kind}/${encodeURIComponent(name)}`

export const loadKeys = (): Promise<Result<Key[]>> => ask(({ keys }) => listOf(keys).map(readKey), 'GET', '/keys')

export function makeKey({ name, targets, allow, expires, rate, from, signs }: KeyWish): Promise<Result<FreshKey>> {
  const addresses = wordsOf(from)
  return ask(readFreshKey, 'POST', '/keys', {
    name: name.trim(), allow, ...targets.length > 0 && { targets }, ...expires && { expires }, ...rate && { rate: Number(rate) },
    ...addresses.length > 0 && { from: addresses }, ...signs && allow.includes('hooks') && { signs },
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
  { name, to, first, after, goesOnUnknown, digest, quiet, lang }: Omit<Target, 'origin' | 'skipped'>, bot: string,
): Promise<Result<undefined>> {
  const at = bot.indexOf(':')
  const body = {
    ...first.length > 0
      ? { first: first.map(writeWay), ...after && { after: Number(after) }, ...goesOnUnknown && { when_unknown: 'next' } }
      : { to, ...bot && { platform: bot.slice(0, at), selfId: bot.slice(at + 1) } },
    ...digest && { digest: Number(digest) }, ...quiet && { quiet }, ...lang && { lang },
  }
  return change('PUT', pathOf('targets', name), body)
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
