import { unescape } from 'node:querystring'

/** The parts of an address to which the relay posts. Only the origin may be logged. */
export interface Endpoint {
  /** The address without credentials and fragment. */
  readonly url: string
  /** The credentials as an `Authorization` header: `fetch` refuses an address that holds any. */
  readonly authorization?: string
  /** Fit for the log: the secret of an incoming webhook is in its path or query. */
  readonly origin: string
}

/** Takes an address apart; `undefined` when it is no http(s) link. */
export function parseEndpoint(address: string): Endpoint | undefined {
  if (!URL.canParse(address)) return
  const url = new URL(address)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return
  const { username, password } = url
  url.username = url.password = url.hash = ''
  const credentials = [username, password].map(text => unescape(text)).join(':')
  // The header of RFC 7617.
  const authorization = credentials === ':' ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`
  return { url: url.href, origin: url.origin, ...authorization !== undefined && { authorization } }
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
 * Says in a few words why a `fetch`, or the reading of its body, failed. The texts of errors may quote the address or the answer, so only
 * their codes are used; the code is somewhere along the causes.
 */
export function networkReason(error: unknown): string {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause.message === 'bad port') return 'a port that fetch does not connect to'
    if (!('code' in cause) || typeof cause.code !== 'string' || !/^\w{1,64}$/.test(cause.code)) continue
    const { code } = cause
    return `${reasons.find(([codes]) => codes.test(code))?.[1] ?? 'the exchange failed'} (${code})`
  }
  return 'the exchange failed'
}
