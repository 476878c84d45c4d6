import { request, type IncomingHttpHeaders, type IncomingMessage, type RequestOptions } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { RelayError } from '../errors'
import { isObject, type JsonObject } from '../lib/shape'

/** What the page asks for, as it would be given to curl. */
export interface PageRequest {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Below the prefix of the plugin, encoded as in a URL. */
  path: string
  query: Record<string, string>
  headers: Record<string, string>
  body: Buffer | undefined
}

/** What it is answered. Exactly one of the last three is there. */
export interface PageAnswer {
  status: number
  headers: Record<string, string>
  json?: unknown
  text?: string
  /** Anything that is neither JSON nor text, and every download. */
  base64?: string
}

const methods = ['GET', 'POST', 'PUT', 'DELETE'] as const

/** Where paths of the plugin begin. Nothing else of the server can be reached. */
const places = 'statusz|deliveries|send|webhook|hooks|payloads|queues|contacts|upload|metrics|keys|targets|templates'
const pathPattern = new RegExp(`^/(?:${places})(?:/|$)`)

/** Headers that say what a body is, or what is to be done with it: none that proves who sends it, or where it comes from. */
const headerPattern = /^(?:content-type|content-disposition|idempotency-key|prefer|sentry-hook-\w+|x-(?!api-key$|forwarded)[a-z0-9-]+)$/

/** How long an answer may take, in milliseconds: the console gives up after a minute. */
const patience = 55_000

/**
 * Reads what the page asks for. A body is a text, or `{base64}`.
 *
 * @throws RelayError `bad-request`
 */
export function parsePageRequest(value: unknown): PageRequest {
  if (!isObject(value)) throw malformed('the request')
  const { path } = value
  const method = methods.find(each => each === value.method)
  if (!method || typeof path !== 'string') throw malformed('method or path')
  const headers = readTexts(value.headers, 'headers')
  const foreign = Object.keys(headers).find(name => !headerPattern.test(name.toLowerCase()))
  if (foreign !== undefined) throw malformed('a header')
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
  if (typeof base64 !== 'string') throw malformed('the body')
  return Buffer.from(base64, 'base64')
}

function malformed(what: string): RelayError {
  return new RelayError('bad-request', `${what} cannot be sent from the page`)
}

/**
 * Makes a request to the plugin's own routes, as any other caller would.
 *
 * @param base the address of the plugin on this machine, with its prefix and without a slash at the end
 * @param stop ends it early
 * @throws RelayError `bad-request` for a path that is not the plugin's, `unsent` when there is no answer
 */
export async function forward(wanted: PageRequest, base: string, key: string, stop: AbortSignal): Promise<PageAnswer> {
  const { method, path, query, headers, body } = wanted
  const root = new URL(base)
  const prefix = root.pathname.replace(/\/$/, '')
  const url = URL.canParse(base + path) ? new URL(base + path) : undefined
  // What remains of the path once dots are resolved is what counts.
  if (url?.origin !== root.origin || !url.pathname.startsWith(prefix) || !pathPattern.test(url.pathname.slice(prefix.length))) {
    throw new RelayError('not-found', 'this path is not one of the page')
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
    throw new RelayError('unsent', 'the relay gave no answer that can be read', { cause })
  }
}

function ask(url: URL, options: RequestOptions, body: Buffer | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => request(url, options, resolve).on('error', reject).end(body))
}

function readHeaders(headers: NodeJS.Dict<string[]>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, values]) => [name, values?.join(', ') ?? '']))
}

/** What is in a download, and what type it is said to be of, others have made up: it stays bytes. */
function readAnswer(bytes: Buffer, headers: IncomingHttpHeaders): Pick<PageAnswer, 'json' | 'text' | 'base64'> {
  const { 'content-type': type = '', 'content-disposition': disposition } = headers
  if (disposition !== undefined) return { base64: bytes.toString('base64') }
  if (/^application\/json\b/.test(type)) return { json: JSON.parse(bytes.toString()) as unknown }
  return type.startsWith('text/') ? { text: bytes.toString() } : { base64: bytes.toString('base64') }
}
