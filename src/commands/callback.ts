import { onAbort } from '../lib/async'
import { networkReason, type Endpoint } from '../lib/endpoint'
import { excessOfJson } from '../lib/json'
import { isObject, type JsonObject } from '../lib/shape'
import { signatureHeaders } from '../lib/webhook-signature'

/** The longest answer that is read, in bytes, counted after decompression. */
const maxAnswer = 1024 * 1024

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
  const stop = () => exchange.abort(new CallbackError('the relay is stopping'))
  const expire = () => exchange.abort(new CallbackError(`no complete answer within ${timeout / 1000} s`, { isTemporary: true }))
  const timer = setTimeout(expire, timeout)
  const unwatch = onAbort(signal, stop)
  let response: Response | undefined
  try {
    if (signal.aborted) stop()
    response = await send(endpoint, JSON.stringify(body), identity, exchange.signal)
    return await readAnswer(response)
  } catch (error) {
    // What an aborted `fetch` throws does not say why it was aborted.
    exchange.signal.throwIfAborted()
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
