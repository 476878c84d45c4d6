import { request, type IncomingHttpHeaders, type IncomingMessage, type RequestOptions } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { RelayError } from '../errors'
import { isObject, type JsonObject } from '../lib/shape'
import { say } from '../texts/text'

/** A request of the page. */
export interface PageRequest {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** The path below the prefix of the plugin, encoded as in a URL. */
  path: string
  query: Record<string, string>
  headers: Record<string, string>
  body: Buffer | undefined
}

/** The answer to the page, with exactly one of `json`, `text` and `base64`. */
export interface PageAnswer {
  status: number
  headers: Record<string, string>
  json?: unknown
  text?: string
  /** The content of downloads, and of any type except JSON and text. */
  base64?: string
}

const methods = ['GET', 'POST', 'PUT', 'DELETE'] as const

/** The first segments of the allowed paths. The page cannot reach other routes of the server. */
const firstSegments = 'statusz|readyz|deliveries|send|webhook|hooks|payloads|queues|contacts|upload|metrics|keys|targets|templates|incidents|beats|people|rotas'
const pathPattern = new RegExp(`^/(?:${firstSegments})(?:/|$)`)

/** The allowed headers: they describe a body or its handling, and never a caller's identity or address. */
const headerNames = 'accept-language|content-type|content-disposition|idempotency-key|prefer|sentry-hook-\\w+|x-(?!api-key$|forwarded)[a-z0-9-]+'
const headerPattern = new RegExp(`^(?:${headerNames})$`)

/** How long an answer may take, in milliseconds; less than a minute, because the console then gives up. */
const patience = 55_000

/**
 * Parses a request of the page. The body is a text or `{base64}`.
 *
 * @throws RelayError `bad-request`
 */
export function parsePageRequest(value: unknown): PageRequest {
  if (!isObject(value)) throw malformed('request')
  const { path } = value
  const method = methods.find(each => each === value.method)
  if (!method || typeof path !== 'string') throw malformed('method, path')
  const headers = readTexts(value.headers, 'headers')
  const foreign = Object.keys(headers).find(name => !headerPattern.test(name.toLowerCase()))
  if (foreign !== undefined) throw malformed('header')
  return { method, path, query: readTexts(value.query, 'query'), headers, body: readBody(value.body) }
}

function readTexts(value: unknown, what: string): Record<string, string> {
  if (value === undefined) return {}
  if (!isObject(value)) throw malformed(what)
  return Object.fromEntries(Object.entries(value).map(([name, text]) => {
    if (typeof text !== 'string') throw malformed(what)
    return [name, text]
  }))
}

function readBody(value: unknown): Buffer | undefined {
  if (value === undefined || value === null) return
  if (typeof value === 'string') return Buffer.from(value)
  const { base64 }: JsonObject = isObject(value) ? value : {}
  if (typeof base64 !== 'string') throw malformed('body')
  return Buffer.from(base64, 'base64')
}

function malformed(what: string): RelayError {
  return new RelayError('bad-request', say('not-from-page', { what }))
}

/**
 * Makes a request to the plugin's own routes, like any other caller.
 *
 * @param base the address of the plugin on this machine, with its prefix and without a slash at the end
 * @param stop ends the request early
 * @throws RelayError `not-found` for a path that is not allowed, `unsent` without a readable answer
 */
export async function forward(wanted: PageRequest, base: string, key: string, stop: AbortSignal): Promise<PageAnswer> {
  const { method, path, query, headers, body } = wanted
  const root = new URL(base)
  const prefix = root.pathname.replace(/\/$/, '')
  const url = URL.canParse(base + path) ? new URL(base + path) : undefined
  // Checks the path after `.` and `..` are resolved.
  if (url?.origin !== root.origin || !url.pathname.startsWith(prefix) || !pathPattern.test(url.pathname.slice(prefix.length))) {
    throw new RelayError('not-found', say('no-page-path'))
  }
  for (const [name, text] of Object.entries(query)) url.searchParams.append(name, text)
  const signal = AbortSignal.any([stop, AbortSignal.timeout(patience)])
  try {
    const incoming = await ask(url, { method, signal, agent: false, headers: { ...headers, authorization: `Bearer ${key}` } }, body)
    const bytes = await buffer(incoming)
    return {
      status: incoming.statusCode ?? 0, headers: readHeaders(incoming.headersDistinct), ...readAnswer(bytes, incoming.headers),
    }
  } catch (cause) {
    throw new RelayError('unsent', say('no-readable-answer'), { cause })
  }
}

function ask(url: URL, options: RequestOptions, body: Buffer | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => request(url, options, resolve).on('error', reject).end(body))
}

function readHeaders(headers: NodeJS.Dict<string[]>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, values]) => [name, values?.join(', ') ?? '']))
}

/** Reads the content of an answer. A download stays bytes, because its content and declared type come from others. */
function readAnswer(bytes: Buffer, headers: IncomingHttpHeaders): Pick<PageAnswer, 'json' | 'text' | 'base64'> {
  const { 'content-type': type = '', 'content-disposition': disposition } = headers
  if (disposition !== undefined) return { base64: bytes.toString('base64') }
  if (/^application\/json\b/.test(type)) return { json: JSON.parse(bytes.toString()) as unknown }
  return type.startsWith('text/') ? { text: bytes.toString() } : { base64: bytes.toString('base64') }
}
