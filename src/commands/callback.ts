import { isObject, type JsonObject } from '../message/parse'
import type { Endpoint } from './endpoint'
import { networkReason } from './reason'

/** The longest answer that is read, in bytes, counted after decompression (contract, "Commands"). */
const maxAnswer = 1024 * 1024

/** The longest delay that `setTimeout` takes, in milliseconds. A longer one would fire at once. */
const maxDelay = 2 ** 31 - 1

/** The body that a callback gets (document, 2.7). */
export interface CommandBody {
  command: string
  content: string
  raw_message: string
  user_id: string
  /** Absent for private messages. */
  group_id?: string
  message_id: string
}

export interface PostOptions {
  /** For the whole exchange, from the look-up of the host to the last byte of the answer, in milliseconds. */
  timeout: number
  /** Ends the exchange at once. */
  signal: AbortSignal
}

/** A callback that gave no usable answer. The message is the reason, and holds neither the answer nor a part of the address. */
export class CallbackError extends Error {
  override readonly name = 'CallbackError'
}

/**
 * Posts a command to its callback (document, 2.7).
 *
 * @returns the answer (2.8), or `undefined` when it says nothing: status 204, an empty body, `{}` or `null`
 * @throws CallbackError for everything but a complete 2xx answer with a JSON object of at most 1 MiB
 */
export async function postCommand(endpoint: Endpoint, body: CommandBody, options: PostOptions): Promise<JsonObject | undefined> {
  const { timeout, signal } = options
  const exchange = new AbortController()
  let givenUp: CallbackError | undefined
  const giveUp = (reason: string) => {
    givenUp ??= new CallbackError(reason)
    exchange.abort(givenUp)
  }
  const stop = () => {
    giveUp('the relay is stopping')
  }
  const timer = setTimeout(giveUp, Math.min(timeout, maxDelay), `no complete answer within ${timeout / 1000} s`)
  signal.addEventListener('abort', stop, { once: true })
  try {
    if (signal.aborted) stop()
    return await readAnswer(await send(endpoint, body, exchange.signal))
  } catch (error) {
    // Whatever the aborted exchange threw, that is why.
    if (givenUp) throw givenUp
    throw error instanceof CallbackError ? error : new CallbackError(networkReason(error), { cause: error })
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
    // An answer that was not read to its end would hold its socket.
    exchange.abort()
  }
}

function send({ url, authorization }: Endpoint, body: CommandBody, signal: AbortSignal): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: {
      'accept': 'application/json',
      'content-type': 'application/json',
      // Commands are rare. A connection kept from the last one may be closed by the other side just as this one is sent,
      // and a POST that failed so cannot be repeated: nobody knows whether it arrived.
      'connection': 'close',
      ...authorization !== undefined && { authorization },
    },
    redirect: 'manual',
    signal,
  })
}

async function readAnswer(response: Response): Promise<JsonObject | undefined> {
  const { status } = response
  if (status >= 300 && status < 400) throw new CallbackError(`a redirect (status ${status}), which is not followed`)
  if (!response.ok) throw new CallbackError(`status ${status}`)
  const text = decode(await readBody(response))
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
    // The text of the parser's error quotes the answer.
    throw new CallbackError('the answer is not valid JSON')
  }
}
