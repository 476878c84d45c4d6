import { isUtf8 } from 'node:buffer'
import { PostEnded, networkReason, postJson, type Endpoint } from '../lib/endpoint'
import { excessOfJson, parseJson } from '../lib/json'
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

export interface CommandPost {
  /** Absent: no such headers. */
  identity?: Identity
  /** For the whole exchange, from the look-up of the host to the last byte of the answer, in milliseconds. */
  timeout: number
  /** Ends the exchange at once. */
  stop: AbortSignal
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
export async function postCommand(endpoint: Endpoint, command: CommandBody, options: CommandPost): Promise<JsonObject | undefined> {
  const { identity, ...times } = options
  const body = JSON.stringify(command)
  const headers = { accept: 'application/json', ...identity && identityHeaders(identity, body) }
  let isAnswered = false
  try {
    return await postJson(endpoint, body, { headers, ...times }, answer => {
      isAnswered = true
      return readAnswer(answer)
    })
  } catch (error) {
    if (error instanceof CallbackError) throw error
    throw new CallbackError(networkReason(error), { cause: error, isTemporary: error instanceof PostEnded || !isAnswered })
  }
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
  if (!isUtf8(bytes)) throw new CallbackError('the answer is not UTF-8')
  // Skips a byte order mark.
  const text = new TextDecoder().decode(bytes)
  if (!text.trim()) return
  const answer = parseJson(text)
  if (answer === undefined) throw new CallbackError('the answer is not valid JSON')
  if (answer === null) return
  if (!isObject(answer)) throw new CallbackError('the answer is not a JSON object')
  return Object.keys(answer).length > 0 ? answer : undefined
}

async function readBody({ body }: Response): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  const stream: AsyncIterable<Uint8Array> | readonly Uint8Array[] = body ?? []
  for await (const chunk of stream) {
    size += chunk.byteLength
    if (size > maxAnswer) throw new CallbackError(`an answer of more than ${maxAnswer} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
