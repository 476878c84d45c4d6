/** Codes of Node, OpenSSL, zlib and undici that say the same thing. The first that fits counts. */
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
 * Says in a few words why a `fetch` failed. Texts of errors are not passed on: they may quote the address or the answer.
 *
 * @param error what `fetch`, or the reading of its body, threw; the code is somewhere along its causes
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
