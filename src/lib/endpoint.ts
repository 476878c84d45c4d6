import { unescape } from 'node:querystring'
import { codeOf } from '../errors'
import { onAbort } from './async'

/** Takes apart an address to which the relay posts; `undefined` when it is no http(s) link. */
export function parseEndpoint(address: string) {
  if (!URL.canParse(address)) return
  const url = new URL(address)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return
  const credentials = [url.username, url.password].map(text => unescape(text)).join(':')
  url.username = url.password = url.hash = ''
  return {
    /** The address without credentials and fragment. */
    url: url.href,
    /** Fit for the log, unlike the rest: the secret of an incoming webhook is in its path or query. */
    origin: url.origin,
    /** The credentials as in RFC 7617: `fetch` refuses an address that holds any. */
    ...credentials !== ':' && { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
  }
}

export type Endpoint = NonNullable<ReturnType<typeof parseEndpoint>>

/** A post that was ended because of its time or a stop. The message is the reason. */
export class PostEnded extends Error {}

/** How JSON is posted. `timeout`: of the whole exchange, in milliseconds; `stop`: ends it at once. */
export interface PostOptions { headers?: Readonly<Record<string, string>>, timeout: number, stop: AbortSignal }

/**
 * Posts JSON. A redirect is an answer like any other.
 *
 * @param read reads the answer; what it leaves unread is dropped
 * @throws PostEnded; what `fetch` and `read` throw. `networkReason` says what it means.
 */
export async function postJson<T>(
  { url, authorization }: Endpoint, body: string, { headers, timeout, stop }: PostOptions, read: (answer: Response) => T | Promise<T>,
): Promise<T> {
  const exchange = new AbortController()
  const late = setTimeout(() => exchange.abort(new PostEnded(`no complete answer within ${timeout / 1000} s`)), timeout)
  const stopped = () => exchange.abort(new PostEnded('the relay is stopping'))
  const unwatch = onAbort(stop, stopped)
  try {
    if (stop.aborted) stopped()
    const answer = await fetch(url, {
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'koishi-plugin-message-relay',
        // The other side may close a connection that was kept from the last post just as this one is sent, and such a POST cannot be
        // repeated, because nobody knows whether it arrived (RFC 9110, section 9.2.2).
        'connection': 'close',
        ...headers,
        ...authorization !== undefined && { authorization },
      },
      redirect: 'manual',
      signal: exchange.signal,
    })
    return await read(answer)
  } catch (error) {
    // What an aborted `fetch` throws does not say why it was aborted.
    exchange.signal.throwIfAborted()
    throw error
  } finally {
    clearTimeout(late)
    unwatch()
    // An answer that was not read to its end would hold its socket.
    exchange.abort()
  }
}

/** The meaning of error codes of Node.js, OpenSSL, zlib and undici. The first row that fits counts. */
const reasons: readonly (readonly [codes: RegExp, text: string])[] = [
  [/^ECONNREFUSED$/, 'connection refused'],
  [/^(ENOTFOUND|EAI_\w+)$/, 'the host name was not found'],
  [/^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/, 'the host was not reached'],
  [/^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'no connection in time'],
  [/^(UND_ERR_HEADERS_TIMEOUT|UND_ERR_BODY_TIMEOUT)$/, 'no complete answer in time'],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET|UND_ERR_RES_CONTENT_LENGTH_MISMATCH)$/, 'connection closed before the answer was complete'],
  [/CERT|SIGNATURE|^(ERR_SSL|ERR_TLS)|^EPROTO$/, 'no TLS connection'],
  [/^(HPE_|UND_ERR_)/, 'the answer is not valid HTTP'],
  [/^Z_/, 'the answer is not compressed as it says'],
]

/**
 * Says in a few words why a post, or the reading of its answer, failed. The texts of errors may quote the address or the answer, so only
 * their codes are used; the code is somewhere along the causes.
 */
export function networkReason(error: unknown): string {
  if (error instanceof PostEnded) return error.message
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause.message === 'bad port') return 'a port that fetch does not connect to'
    const code = codeOf(cause)
    if (/^[A-Z]\w{0,63}$/.test(code)) return `${reasons.find(([codes]) => codes.test(code))?.[1] ?? 'the exchange failed'} (${code})`
  }
  return 'the exchange failed'
}
