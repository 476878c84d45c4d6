import { call, type Method } from './api'
import { isFields, listOf, numberOf, textOf, textsOf, wordsOf, type Fields } from './fields'

/** A key as `GET /keys` shows it. */
function readKey(fields: Fields) {
  return {
    name: textOf(fields.name),
    /** Absent for every target. */
    targets: Array.isArray(fields.targets) ? textsOf(fields.targets) : undefined,
    allow: textsOf(fields.allow),
    /** Absent for never; so are all times that follow. */
    expires: textOf(fields.expires) || undefined,
    /** In messages a minute; absent for no limit. */
    rate: fields.rate === undefined ? undefined : numberOf(fields.rate),
    /** The addresses that may use it; empty for all. */
    from: textsOf(fields.from),
    origin: originOf(fields),
    lastUsedAt: textOf(fields.last_used_at) || undefined,
  }
}

export type Key = ReturnType<typeof readKey>

/** A key to be made. */
export interface KeyWish {
  name: string
  /** Empty for every target. */
  targets: readonly string[]
  allow: readonly string[]
  /** A date; empty for never. */
  expires: string
  /** Empty for no limit. */
  rate: string
  /** Addresses with commas between them; empty for every address. */
  from: string
  /** Whether it has a secret for signatures as well, where it is for something that signs. */
  signs: boolean
}

/** What is shown of a key once, and never again. */
function readFreshKey({ name, key, secret }: Fields) {
  return {
    name: textOf(name),
    key: textOf(key),
    /** Empty where nothing is to be signed. */
    secret: textOf(secret),
  }
}

export type FreshKey = ReturnType<typeof readFreshKey>

/** A name for one or more targets. */
function readTarget(fields: Fields) {
  return {
    name: textOf(fields.name),
    /** Whole addresses: `onebot:10000:group:1` where it names a bot. */
    to: textsOf(fields.to),
    /** The ways to it, one after another, instead of `to`; empty without any. */
    first: Array.isArray(fields.first) ? fields.first.map(readWay) : [],
    /** Names among the ways that lead to no single chat any more. */
    skipped: textsOf(fields.skipped),
    /** In seconds, as written: how long a way may keep a message waiting. */
    after: textOf(fields.after),
    /** Whether the next way follows one that went unanswered. */
    goesOnUnknown: fields.when_unknown === 'next',
    /** In seconds, as written: the least time between two messages; empty for none. */
    digest: textOf(fields.digest),
    /** When only urgent messages leave; absent for never. */
    quiet: readQuiet(fields.quiet),
    /** Empty for that of the settings. */
    lang: textOf(fields.lang),
    origin: originOf(fields),
  }
}

export type Target = ReturnType<typeof readTarget>

/** A way to a target. */
function readWay(way: unknown) {
  const { url, secret, format } = isFields(way) ? way : { url: way }
  return {
    /** An address, a name or an HTTP address. */
    address: textOf(url),
    /** Of an HTTP address: a new secret for signatures; empty for none, or for the one that it has. */
    secret: '',
    hasSecret: secret === true,
    /** Of an HTTP address: empty for JSON of the relay's own, or `apprise`. */
    format: textOf(format),
  }
}

export type Way = ReturnType<typeof readWay>

/** Times of the day such as `22:00`, and the name of their time zone. */
function readQuiet(quiet: unknown) {
  return isFields(quiet) ? { from: textOf(quiet.from), to: textOf(quiet.to), zone: textOf(quiet.zone) } : undefined
}

export type Quiet = NonNullable<ReturnType<typeof readQuiet>>

/** Whether something stands in the settings, which this page does not change, or was made while the relay runs. */
function originOf({ source }: Fields): 'settings' | 'made' {
  return source === 'made' ? 'made' : 'settings'
}

export const isHttp = ({ address }: Pick<Way, 'address'>): boolean => /^https?:/i.test(address)

/** All that a target leads to. */
export function placesOf({ to, first }: Pick<Target, 'to' | 'first'>): string[] {
  return first.length > 0 ? first.map(({ address }) => address) : to
}

/** What was wished for, or why there is none. */
export type Result<T> = { value: T } | { problem: string }

async function ask<T>(read: (data: Fields) => T, method: Method, path: string, body?: object): Promise<Result<T>> {
  const { isRight, data, msg } = await call(method, path, body && { body: JSON.stringify(body) })
  return isRight ? { value: read(data) } : { problem: msg }
}

/** For what is answered with nothing that is of use. */
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

/** @param grace for how many seconds the old key still counts */
export function rotateKey(name: string, grace: number): Promise<Result<FreshKey>> {
  return ask(readFreshKey, 'POST', `${pathOf('keys', name)}/rotate`, { grace })
}

export const revokeKey = (name: string): Promise<Result<undefined>> => change('DELETE', pathOf('keys', name))

export const loadTargets = (): Promise<Result<Target[]>> => ask(({ targets }) => listOf(targets).map(readTarget), 'GET', '/targets')

/**
 * Makes a target, or changes it.
 *
 * @param bot the only one that writes to it, as `platform:id`; empty for any
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

/** The template of a source: one's own, or the one that comes with the relay. */
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

/** Goes back to the template that comes with the relay. */
export const resetTemplate = (name: string): Promise<Result<undefined>> => change('DELETE', pathOf('templates', name))

/** What a template makes of a payload. */
export type Rendering = { text: string, pictures: string[] } | { skipped: string }

/** Shows what a template would make of a payload. Nothing is sent. */
export function previewTemplate(name: string, template: string, payload: Fields, event: string): Promise<Result<Rendering>> {
  return ask(({ skipped, text, pictures }) => {
    return skipped === undefined ? { text: textOf(text), pictures: textsOf(pictures) } : { skipped: textOf(skipped) }
  }, 'POST', `${pathOf('templates', name)}/preview`, { template, payload, ...event && { event } })
}

/** A payload, or `undefined` for what is no object of JSON. */
export function parsePayload(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isFields(value) ? value : undefined
  } catch {
    return undefined
  }
}
