import type { HTTP } from 'koishi'
import { isUtf8 } from 'node:buffer'
import { PostEnded, networkReason, postJson, type Endpoint } from '../lib/endpoint'
import { excessOfJson, parseJson } from '../lib/json'
import { isObject, type JsonObject } from '../lib/shape'
import { signatureHeaders } from '../lib/webhook-signature'
import { writeSize } from '../lib/words'
import { clauses, say, type Text } from '../texts/text'

/** The longest accepted answer, in bytes after decompression. */
const maxAnswer = 1024 * 1024

/** The body of a post to a callback. */
export interface CommandBody {
  command: string
  content: string
  raw_message: string
  user_id: string
  /** Absent for private messages. */
  group_id?: string
  message_id: string
}

/** The identity of a post, for the headers of the Standard Webhooks specification. */
export interface Identity {
  /** `webhook-id`, by which the callback recognizes a retry, and a message that is reported again. */
  id: string
  /** The secret for the signature; empty for none. */
  secret: string
}

/** Options of a post. */
export interface CommandPost {
  http?: HTTP
  /** Absent: no identity headers. */
  identity?: Identity
  /** The time for the whole exchange, from the DNS look-up to the last byte of the answer, in milliseconds. */
  timeout: number
  /** Ends the exchange at once. */
  stop: AbortSignal
}

/** A callback gave no usable answer. It says why, without the answer and without any part of the address. */
export class CallbackError extends Error {
  override readonly name = 'CallbackError'
  /** Whether a retry may help: the callback answered 503, or not at all. */
  readonly isTemporary: boolean

  constructor(readonly said: Text, { isTemporary = false, ...options }: ErrorOptions & { isTemporary?: boolean } = {}) {
    super(said.toString(), options)
    this.isTemporary = isTemporary
  }
}

/**
 * Posts a command to its callback.
 *
 * @returns the answer; `undefined` if it is empty: status 204, no body, `{}` or `null`
 * @throws CallbackError unless the answer is complete, 2xx, and a JSON object of at most 1 MiB within the levels and values that a request
 *   may have
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
    throw new CallbackError(clauses(networkReason(error)), { cause: error, isTemporary: error instanceof PostEnded || !isAnswered })
  }
}

function identityHeaders({ id, secret }: Identity, body: string): Record<string, string> {
  return { 'webhook-id': id, ...secret && signatureHeaders(secret, { id, time: Date.now(), body }) }
}

async function readAnswer(response: Response): Promise<JsonObject | undefined> {
  const { status } = response
  if (status >= 300 && status < 400) throw new CallbackError(say('callback-redirect', { status }))
  if (!response.ok) throw new CallbackError(say('status-code', { status }), { isTemporary: status === 503 })
  const bytes = await readBody(response)
  const excess = excessOfJson(bytes)
  if (excess !== undefined) throw new CallbackError(say('callback-excess', { excess }))
  if (!isUtf8(bytes)) throw new CallbackError(say('callback-not-utf8'))
  // Skips a byte order mark.
  const text = new TextDecoder().decode(bytes)
  if (!text.trim()) return
  const answer = parseJson(text)
  if (answer === undefined) throw new CallbackError(say('callback-not-json'))
  if (answer === null) return
  if (!isObject(answer)) throw new CallbackError(say('callback-no-object'))
  return Object.keys(answer).length > 0 ? answer : undefined
}

async function readBody({ body }: Response): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  const stream: AsyncIterable<Uint8Array> | readonly Uint8Array[] = body ?? []
  for await (const chunk of stream) {
    size += chunk.byteLength
    if (size > maxAnswer) throw new CallbackError(say('callback-too-long', { size: writeSize(maxAnswer) }))
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
