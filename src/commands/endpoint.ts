/** A callback address, taken apart so that its secrets go where they belong and into no log. */
export interface Endpoint {
  /** The address to fetch, without credentials and fragment. */
  readonly url: string
  /** The credentials of the address as an `Authorization` header: `fetch` refuses an address that holds any. */
  readonly authorization?: string
  /** Origin and path. The query, where tokens travel, is left out: this is what may be logged. */
  readonly label: string
}

/** Reads a callback address; `undefined` when it is no http(s) link. */
export function parseEndpoint(address: string): Endpoint | undefined {
  if (!URL.canParse(address)) return
  const url = new URL(address)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return
  const { username, password } = url
  url.username = url.password = url.hash = ''
  return {
    url: url.href,
    label: url.origin + url.pathname,
    ...(username || password) && { authorization: basic(username, password) },
  }
}

function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${decode(username)}:${decode(password)}`).toString('base64')}`
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // A bare `%` is legal in an address, and then means itself.
    return text
  }
}
