import { onAbort } from '../lib/abort'
import { excessOfJson } from '../lib/json'
import { signatureHeaders } from '../lib/webhook-signature'
import { isObject, type JsonObject } from '../message/parse'

/** The longest answer that is read, in bytes, counted after decompression. */
const maxAnswer = 1024 * 1024

/** The longest delay that `setTimeout` of Node.js takes, in milliseconds. With a longer one it would fire at once. */
const maxDelay = 2 ** 31 - 1

/** A callback address, taken apart so that its secrets go where they belong and into no log. */
export interface Endpoint {
  /** The address to fetch, without credentials and fragment. */
  readonly url: string
  /** The credentials of the address as an `Authorization` header: `fetch` refuses an address that holds any. */
  readonly authorization?: string
  /** What may be logged: origin and path, without the query, which may hold a token. */
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
    ...(username || password) && { authorization: toBasic(username, password) },
  }
}

/** The header of RFC 7617 for credentials as they stand in an address. */
function toBasic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${unescape(username)}:${unescape(password)}`).toString('base64')}`
}

function unescape(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // An address may hold a `%` that begins no escape; it stands for itself.
    return text
  }
}

/** The body that a callback gets. */
export interface CommandBody {
  command: string
  content: string
  raw_message: string
  user_id: string
  /** Absent for private messages. */
  group_id?: string
  message_id: string
}

/** What a callback is told of a command beside its body, by the headers of the Standard Webhooks specification. */
export interface Identity {
  /** `webhook-id`, by which it tells a second try. */
  id: string
  /** What the post is signed with; an empty text for none. */
  secret: string
}

export interface PostOptions {
  /** Absent: no such headers. */
  identity?: Identity
  /** For the whole exchange, from the look-up of the host to the last byte of the answer, in milliseconds. */
  timeout: number
  /** Ends the exchange at once. */
  signal: AbortSignal
}

/** A callback that gave no usable answer. The message is the reason, and holds neither the answer nor a part of the address. */
export class CallbackError extends Error {
  override readonly name = 'CallbackError'
  /** Whether it answered 503, or not at all: asked once more, it may answer. */
  readonly isTemporary: boolean

  constructor(message: string, { isTemporary = false, ...options }: ErrorOptions & { isTemporary?: boolean } = {}) {
    super(message, options)
    this.isTemporary = isTemporary
  }
}

/**
 * Posts a command to its callback.
 *
 * @returns the answer, or `undefined` when it says nothing: status 204, an empty body, `{}` or `null`
 * @throws CallbackError for everything but a complete 2xx answer with a JSON object of at most 1 MiB, with no more levels and values than a
 *   request may have
 */
export async function postCommand(endpoint: Endpoint, body: CommandBody, options: PostOptions): Promise<JsonObject | undefined> {
  const { identity, timeout, signal } = options
  const exchange = new AbortController()
  let givenUp: CallbackError | undefined
  const giveUp = (reason: CallbackError) => {
    givenUp ??= reason
    exchange.abort(givenUp)
  }
  const stop = () => giveUp(new CallbackError('the relay is stopping'))
  const expire = () => giveUp(new CallbackError(`no complete answer within ${timeout / 1000} s`, { isTemporary: true }))
  const timer = setTimeout(expire, Math.min(timeout, maxDelay))
  const unwatch = onAbort(signal, stop)
  let response: Response | undefined
  try {
    if (signal.aborted) stop()
    response = await send(endpoint, JSON.stringify(body), identity, exchange.signal)
    return await readAnswer(response)
  } catch (error) {
    // What an aborted `fetch` throws does not say why it was aborted.
    if (givenUp) throw givenUp
    throw error instanceof CallbackError ? error : new CallbackError(networkReason(error), { cause: error, isTemporary: !response })
  } finally {
    clearTimeout(timer)
    unwatch()
    // An answer that was not read to its end would hold its socket.
    exchange.abort()
  }
}

function send({ url, authorization }: Endpoint, body: string, identity: Identity | undefined, signal: AbortSignal): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    body,
    headers: {
      'accept': 'application/json',
      'content-type': 'application/json',
      // Commands are rare. The other side may close a connection that was kept from the last command just as this one is sent,
      // and such a POST cannot be repeated, because nobody knows whether it arrived (RFC 9110, section 9.2.2).
      'connection': 'close',
      ...authorization !== undefined && { authorization },
      ...identity && identityHeaders(identity, body),
    },
    redirect: 'manual',
    signal,
  })
}

function identityHeaders({ id, secret }: Identity, body: string): Record<string, string> {
  return { 'webhook-id': id, ...secret && signatureHeaders(secret, { id, time: Date.now(), body }) }
}

async function readAnswer(response: Response): Promise<JsonObject | undefined> {
  const { status } = response
  if (status >= 300 && status < 400) throw new CallbackError(`a redirect (status ${status}), which is not followed`)
  if (!response.ok) throw new CallbackError(`status ${status}`, { isTemporary: status === 503 })
  const bytes = await readBody(response)
  const excess = excessOfJson(bytes)
  if (excess !== undefined) throw new CallbackError(`an answer of ${excess}`)
  const text = decode(bytes)
  if (!text.trim()) return
  const answer = parse(text)
  if (answer === null) return
  if (!isObject(answer)) throw new CallbackError('the answer is not a JSON object')
  return Object.keys(answer).length > 0 ? answer : undefined
}

async function readBody({ body }: Response): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  const reader: ReadableStreamDefaultReader<Uint8Array> | undefined = body?.getReader()
  for (;;) {
    const chunk = await reader?.read()
    if (!chunk || chunk.done) return Buffer.concat(chunks)
    size += chunk.value.byteLength
    if (size > maxAnswer) throw new CallbackError(`an answer of more than ${maxAnswer} bytes`)
    chunks.push(chunk.value)
  }
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new CallbackError('the answer is not UTF-8')
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own error quotes the answer.
    throw new CallbackError('the answer is not valid JSON')
  }
}

/** What codes of Node.js, OpenSSL, zlib and undici mean. The first row that fits counts. */
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
