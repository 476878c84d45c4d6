// The address of a hook: the source, the targets, and behind them the path that a client appends to whatever address it was given.
import type { Exchange } from '../http/routes'
import { RelayError } from '../errors'
import { say } from '../texts/text'
import type { Sources } from './registry'
import type { Source } from './source'

/** Matches doubled slashes, too, and an address that ends early, which gets a helpful error. */
export const pattern = '(/+)hooks(/+|$):source([^/]*)(/*):targets([^/]*)(/*):tail(.*)'

const keyField = /^(?:key|api_?key|access_?token|token|app_?token|device_?keys?|push_?key|spt(?:list)?|auth)$|^\//i

/**
 * Whether a field or a parameter holds a key in the protocol of some client. A parameter that begins like a path was appended, and may
 * have one in its name or value.
 */
export function isKeyField(name: string): boolean {
  return keyField.test(name)
}

/** The services with a path of their own, by the path that their clients append. */
const dialects: readonly [path: RegExp, source: string][] = [
  [/(?:^|\/)slack$|^services\//, 'slack'],
  [/(?:^|\/)github$/, 'github'],
  [/^api\/webhooks\//, 'discord'],
  [/^cgi-bin\/webhook\/send$/, 'wecom'],
  [/^robot\/send$/, 'dingtalk'],
  [/^open-apis\/bot\//, 'feishu'],
]

/** Paths of clients whose text is elsewhere: those of Telegram, PushDeer, PushPlus and Qmsg, WxPusher. */
const withoutText = /^(?:bot[^/]*\/\w+$|message\/push$|j?send\/|api\/)/

/** A key of Bark, or one of the relay that is no longer right. */
const otherKey = /^(?=\D{0,42}\d)(?:[A-Za-z\d]{20,43}|[\w-]{43})$/

/** The most keys in one place of a request. */
export const maxKeys = 8

/** What the address of a request says. */
export interface HookAddress {
  /** The source that it names. */
  readonly door: Source | undefined
  /** The source that reads the request: another one if the client appends the path of another service. */
  readonly source: Source | undefined
  /** The segments behind the target, as sent. */
  readonly segments: readonly string[]
  /** What the client has appended, to the path or to the query. */
  readonly tail: string
}

/** Reads the address of a request. */
export function readAddress({ request, params, path, query }: Exchange, sources: Sources): HookAddress {
  const door = sources.get(params.source ?? '')
  const segments = path.split('/').filter(segment => segment !== '').slice(3)
  // A client that appends to an address with a query, appends to the query: `?key=<key>/slack`, `?key=<key>&/message?token=<token>`.
  const inQuery = [...query].map(([name, value]) => {
    if (name.startsWith('/')) return name.replace(/\?.*/s, '')
    return isKeyField(name) ? value.replace(/^[^/]*/, '') : ''
  })
  const tail = segments.length > 0 ? segments.join('/') : (inQuery.find(each => each !== '') ?? '').slice(1)
  const [, dialect] = request.method !== 'GET' && door?.takesTail ? dialects.find(([each]) => each.test(tail)) ?? [] : []
  return { door, source: dialect === undefined ? door : sources.get(dialect), segments, tail }
}

/** The keys that may be in the path: each segment, also within `bot<key>` and `<key>.send`. */
export function keysInPath(segments: readonly string[]): Buffer[] {
  return segments.slice(0, maxKeys).map(decode).flatMap(each => [each, each.replace(/^bot|\.send$/g, '')].map(text => Buffer.from(text)))
}

/**
 * The texts in the path, as Bark's first API has them: `/<title>/<body>` or `/<title>/<subtitle>/<body>`, with or without a key before
 * them. One segment alone is a key, even a wrong one, and never text.
 */
export function textsInPath({ segments, tail }: HookAddress, isKey: (text: string) => boolean): Record<string, string> {
  if (segments.length < 2 || withoutText.test(tail)) return {}
  // Bark reads a plus sign as a blank, and its clients rely on it.
  const texts = segments.filter((each, index) => !(index === 0 && otherKey.test(each)) && !isKey(decode(each))).map(each => decode(each.replaceAll('+', ' ')))
  const [title, subtitle] = texts.length > 2 ? texts : texts.slice(0, -1)
  return { ...title !== undefined && { title }, ...subtitle !== undefined && { subtitle }, body: texts.slice(texts.length > 2 ? 2 : -1).join('/') }
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw new RelayError('bad-request', say('path-not-utf8'))
  }
}
