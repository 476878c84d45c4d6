import { call, type Reply } from './api'
import { fieldsOf, isFields, listOf, numberOf, textOf, textsOf, type Fields } from './fields'

/** Whether something stands in the settings, which this page does not change, or was made while the relay runs. */
export type Origin = 'settings' | 'made'

/** A key as `GET /keys` shows it. */
export interface Key {
  name: string
  /** Absent for every target. */
  targets: string[] | undefined
  allow: string[]
  /** Absent for never; so are all times that follow. */
  expires: string | undefined
  /** In messages a minute; absent for no limit. */
  rate: number | undefined
  /** The addresses that may use it; empty for all. */
  from: string[]
  origin: Origin
  createdAt: string | undefined
  lastUsedAt: string | undefined
}

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
  /** Empty for every address. */
  from: readonly string[]
  /** Whether it has a secret for signatures as well. */
  signs: boolean
}

/** What is shown of a key once, and never again. */
export interface FreshKey {
  name: string
  key: string
  /** Empty where nothing is to be signed. */
  secret: string
}

/** A name for one or more targets. */
export interface Target {
  name: string
  /** Whole addresses: `onebot:10000:group:1` where it names a bot. */
  to: string[]
  /** The ways to it, the first that takes a message; then `to` is empty. */
  first: Way[]
  /** For how many seconds a way may keep a message waiting, and what follows one that went unanswered. */
  after: string
  whenUnknown: string
  /** The least seconds between two messages; empty for none. */
  digest: string
  /** Empty texts for none. */
  quiet: { from: string, to: string, zone: string }
  /** Empty for that of the settings. */
  lang: string
  origin: Origin
}

/** An address of a chat, a name, or an HTTP address; of a secret it is only known that there is one. */
export type Way = string | { url: string, secret?: true, format?: string }

/** A way in one word. */
export function wordOf(way: Way): string {
  return typeof way === 'string' ? way : way.url
}

/** What was wished for, or why there is none. */
export type Result<T> = { value: T } | { problem: string }

function resultOf<T>(reply: Reply, read: (data: Fields) => T): Result<T> {
  return reply.isRight ? { value: read(reply.data) } : { problem: reply.msg }
}

const originOf = ({ source }: Fields): Origin => source === 'made' ? 'made' : 'settings'
const momentOf = (value: unknown): string | undefined => {
  if (typeof value === 'number') return new Date(value).toISOString()
  return textOf(value) || undefined
}

export async function loadKeys(): Promise<Result<Key[]>> {
  return resultOf(await call('GET', '/keys'), ({ keys }) => listOf(keys).map(fields => ({
    name: textOf(fields.name),
    targets: Array.isArray(fields.targets) ? textsOf(fields.targets) : undefined,
    allow: textsOf(fields.allow),
    expires: momentOf(fields.expires),
    rate: fields.rate === undefined ? undefined : numberOf(fields.rate),
    from: textsOf(fields.from),
    origin: originOf(fields),
    createdAt: momentOf(fields.created_at),
    lastUsedAt: momentOf(fields.last_used_at),
  })))
}

export async function makeKey({ name, targets, allow, expires, rate, from, signs }: KeyWish): Promise<Result<FreshKey>> {
  const body = {
    name, allow, ...targets.length > 0 && { targets }, ...expires && { expires }, ...rate && { rate: Number(rate) },
    ...from.length > 0 && { from }, ...signs && { signs },
  }
  return resultOf(await call('POST', '/keys', { body: JSON.stringify(body) }), readFreshKey)
}

/** @param grace for how many seconds the old key still counts */
export async function rotateKey(name: string, grace: number): Promise<Result<FreshKey>> {
  return resultOf(await call('POST', `/keys/${encodeURIComponent(name)}/rotate`, { body: JSON.stringify({ grace }) }), readFreshKey)
}

function readFreshKey({ name, key, secret }: Fields): FreshKey {
  return { name: textOf(name), key: textOf(key), secret: textOf(secret) }
}

export async function revokeKey(name: string): Promise<Result<undefined>> {
  return resultOf(await call('DELETE', `/keys/${encodeURIComponent(name)}`), () => undefined)
}

export async function loadTargets(): Promise<Result<Target[]>> {
  return resultOf(await call('GET', '/targets'), ({ targets }) => listOf(targets).map(fields => ({
    name: textOf(fields.name), to: textsOf(fields.to), lang: textOf(fields.lang), origin: originOf(fields),
    first: Array.isArray(fields.first) ? fields.first.map(readWay) : [],
    after: textOf(fields.after), whenUnknown: textOf(fields.when_unknown),
    digest: textOf(fields.digest), quiet: readQuiet(fieldsOf(fields.quiet)),
  })))
}

function readWay(way: unknown): Way {
  if (!isFields(way)) return textOf(way)
  const format = textOf(way.format)
  return { url: textOf(way.url), ...way.secret === true && { secret: true }, ...format && { format } }
}

function readQuiet({ from, to, zone }: Fields): Target['quiet'] {
  return { from: textOf(from), to: textOf(to), zone: textOf(zone) }
}

/**
 * Makes a target, or changes it.
 *
 * @param bot the only one that writes to it, as `platform:id`; empty for any
 */
export async function saveTarget(
  { name, to, first, after, whenUnknown, digest, quiet: { from, to: until, zone }, lang }: Omit<Target, 'origin'>, bot: string,
): Promise<Result<undefined>> {
  const at = bot.indexOf(':')
  const ways = { first, ...after && { after: Number(after) }, ...whenUnknown && { when_unknown: whenUnknown } }
  const body = {
    ...first.length > 0 ? ways : { to, ...bot && { platform: bot.slice(0, at), selfId: bot.slice(at + 1) } },
    ...digest && { digest: Number(digest) }, ...(from || until) && { quiet: { from, to: until, ...zone && { zone } } }, ...lang && { lang },
  }
  return resultOf(await call('PUT', `/targets/${encodeURIComponent(name)}`, { body: JSON.stringify(body) }), () => undefined)
}

export async function removeTarget(name: string): Promise<Result<undefined>> {
  return resultOf(await call('DELETE', `/targets/${encodeURIComponent(name)}`), () => undefined)
}

/** The template of a source: one's own, or the one that comes with the relay. */
export interface Template {
  text: string
  isOwn: boolean
}

const templatePath = (source: string): string => `/templates/${encodeURIComponent(source)}`

export async function loadTemplate(source: string): Promise<Result<Template>> {
  return resultOf(await call('GET', templatePath(source)), ({ template, source: origin }) => ({ text: textOf(template), isOwn: origin === 'own' }))
}

export async function saveTemplate(source: string, template: string): Promise<Result<undefined>> {
  return resultOf(await call('PUT', templatePath(source), { body: JSON.stringify({ template }) }), () => undefined)
}

/** Goes back to the template that comes with the relay. */
export async function resetTemplate(source: string): Promise<Result<undefined>> {
  return resultOf(await call('DELETE', templatePath(source)), () => undefined)
}

/** What a template makes of a payload. */
export type Rendering = { text: string, pictures: string[] } | { skipped: string }

/** Shows what a template would make of a payload. Nothing is sent. */
export async function previewTemplate(source: string, template: string, payload: Fields, event: string): Promise<Result<Rendering>> {
  const body = { template, payload, ...event && { event } }
  return resultOf(await call('POST', `${templatePath(source)}/preview`, { body: JSON.stringify(body) }), ({ skipped, text, pictures }) => {
    return skipped === undefined ? { text: textOf(text), pictures: textsOf(pictures) } : { skipped: textOf(skipped) }
  })
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
