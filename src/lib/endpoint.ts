import { HTTP, type Context } from 'koishi'
import { unescape } from 'node:querystring'
import { codeOf } from '../errors'
import { say, type Text } from '../texts/text'
import type { TextId } from '../texts/table'
import { onAbort } from './async'

/** Parses an address to which the relay posts; `undefined` if it is not an http(s) link. */
export function parseEndpoint(address: string) {
  if (!URL.canParse(address)) return
  const url = new URL(address)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return
  const credentials = [url.username, url.password].map(text => unescape(text)).join(':')
  url.username = url.password = url.hash = ''
  return {
    /** The address without credentials and fragment. */
    url: url.href,
    /** Safe for the log. The rest is not: the path or query of an incoming webhook contains its secret. */
    origin: url.origin,
    /** The credentials as in RFC 7617: `fetch` refuses an address with credentials. */
    ...credentials !== ':' && { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
  }
}

export type Endpoint = NonNullable<ReturnType<typeof parseEndpoint>>

/** A post that ended because of its timeout or a stop. */
export class PostEnded extends Error {
  constructor(readonly reason: Text) {
    super(reason.toString())
  }
}

/** Options of a post. `timeout` limits the whole exchange, in milliseconds; `stop` ends it at once. */
export interface PostOptions { http?: HTTP, headers?: Readonly<Record<string, string>>, timeout: number, stop: AbortSignal }

/** Without a proxy. */
const plain = new HTTP()

/**
 * The HTTP client of an app, through its proxy if it has one. It belongs to the app and not to the plugin, whose last posts end after it is
 * disposed.
 */
export function httpOf({ root }: Context): HTTP {
  return root.get('http') ?? plain
}

/**
 * Posts JSON. A redirect is an answer like any other.
 *
 * @param read reads the answer; an unread rest is dropped
 * @throws PostEnded, and the errors of the client and `read`. `networkReason` explains them.
 */
export async function postJson<T>(
  { url, authorization }: Endpoint, body: string, { http = plain, headers, timeout, stop }: PostOptions,
  read: (answer: Response) => T | Promise<T>,
): Promise<T> {
  const exchange = new AbortController()
  const late = setTimeout(() => exchange.abort(new PostEnded(say('no-answer-within', { seconds: timeout / 1000 }))), timeout)
  const stopped = () => exchange.abort(new PostEnded(say('relay-stopping')))
  const unwatch = onAbort(stop, stopped)
  try {
    if (stop.aborted) stopped()
    const { data } = await http<T>('POST', url, {
      // If it is not set, the plugin proxy-agent decides.
      proxyAgent: http.config.proxyAgent,
      data: body,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'koishi-plugin-message-relay',
        // The server may close a kept-alive connection just as the next POST is sent on it. Such a POST cannot be repeated, because it
        // may have arrived (RFC 9110, section 9.2.2).
        'connection': 'close',
        ...headers,
        ...authorization !== undefined && { authorization },
      },
      redirect: 'manual',
      signal: exchange.signal,
      // The client's own, which may be set for the whole app.
      timeout: 0,
      validateStatus: () => true,
      responseType: read,
    })
    return data
  } catch (error) {
    // The error of an aborted exchange lacks the reason of the abort, so this throws the reason.
    exchange.signal.throwIfAborted()
    throw error
  } finally {
    clearTimeout(late)
    unwatch()
    // An answer that is not read to its end would keep its socket open.
    exchange.abort()
  }
}

/** The meaning of error codes of Node.js, OpenSSL, zlib and undici. The first matching row counts. */
const reasons = [
  [/^ECONNREFUSED$/, 'connection-refused'],
  [/^(ENOTFOUND|EAI_\w+)$/, 'host-not-found'],
  [/^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/, 'host-not-reached'],
  [/^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'no-connection-in-time'],
  [/^(UND_ERR_HEADERS_TIMEOUT|UND_ERR_BODY_TIMEOUT)$/, 'no-complete-answer'],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET|UND_ERR_RES_CONTENT_LENGTH_MISMATCH)$/, 'connection-closed-early'],
  [/CERT|SIGNATURE|^(ERR_SSL|ERR_TLS)|^EPROTO$/, 'no-tls'],
  [/^UND_ERR_ABORTED$/, 'no-proxy-connection'],
  // From Node.js 26 on, `fetch` and the undici 6 of Koishi's proxy-agent do not understand each other.
  [/^UND_ERR_INVALID_ARG$/, 'no-proxy-on-this-node'],
  [/^(HTTPParserError$|UND_ERR_)/, 'invalid-http'],
  [/^Z_/, 'invalid-compression'],
] as const satisfies readonly (readonly [codes: RegExp, id: TextId])[]

/**
 * Explains in a few words why a post, or reading its answer, failed. The texts of errors may quote the address or the answer, so only
 * their codes are used. The code may be that of the error or of any of its causes.
 */
export function networkReason(error: unknown): Text {
  if (error instanceof PostEnded) return error.reason
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause.message === 'bad port') return say('bad-port')
    // From Node.js 24 on, this error has no code.
    const code = cause.name === 'HTTPParserError' ? cause.name : codeOf(cause)
    if (/^[A-Z]\w{0,63}$/.test(code)) return say('with-code', { failure: say(reasons.find(([codes]) => codes.test(code))?.[1] ?? 'exchange-failed'), code })
  }
  return say('exchange-failed')
}
