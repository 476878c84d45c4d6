import type { MessageRelay, RelayDelivery, RelayError } from 'koishi-plugin-message-relay'
import { isUtf8 } from 'node:buffer'
import type { Subscription } from './config'
import { write } from './texts'

type ErrorCode = RelayError['code']

/** A message as it came from a broker. */
export interface Message {
  payload: Buffer
  contentType?: string | undefined
  userProperties?: Readonly<Record<string, string | string[]>> | undefined
}

/**
 * What became of a message: the relay has it; it is refused for good; or it stays at the broker, because the relay may accept it later.
 * `isGeneral` says that it would accept no other message either.
 */
export type Verdict
  = { kind: 'accepted', deliveries: readonly RelayDelivery[] }
    | { kind: 'refused', code: number, error: string, reason: string }
    | { kind: 'left', isGeneral: boolean, error: string, reason: string }

/** The errors that pass: of the relay as a whole, and of one chat. */
const general: ReadonlySet<ErrorCode> = new Set(['store-down', 'storage-full', 'standby', 'stopping', 'unanswered'])
const ofChat: ReadonlySet<ErrorCode> = new Set(['queue-full', 'unsent', 'paused', 'in-progress'])

/** Reason codes of MQTT 5 (its section 2.4). */
export const reasonCodes = { success: 0, unspecified: 128, specific: 131, topic: 144, payload: 153 } as const

/** A payload that cannot be read, with the reason in the language of the log. */
class Unreadable extends Error {}

/**
 * Hands a message to the relay, which has flushed it, and its Idempotency-Key, to the disk by the time that this resolves.
 *
 * @param scope keeps the keys of this subscription apart from those of others
 */
export async function deliver(relay: MessageRelay, { to, key: keyName }: Subscription, scope: string, message: Message): Promise<Verdict> {
  try {
    const isJson = looksLikeJson(message)
    const body = isJson ? parseObject(message.payload, relay) : { msg: readText(message.payload, relay) }
    if (!isJson && !to) throw new Unreadable(write(relay.language, 'no-target'))
    if (to && ['to', 'group_id', 'user_id'].some(field => Reflect.get(body, field))) throw new Unreadable(write(relay.language, 'two-targets'))
    const written: unknown = message.userProperties?.[keyName] ?? Reflect.get(body, keyName)
    const key = (written ?? undefined) === undefined ? undefined : `${scope}:${typeof written === 'string' ? written : JSON.stringify(written)}`
    const deliveries = await relay.post(body, { ...to && { to }, ...key !== undefined && { key }, wait: 0 })
    // Without a key, the chats that have accepted the message would get it again.
    const mayRepeat = key !== undefined || deliveries.every(({ refusal }) => refusal !== undefined)
    const refusals = mayRepeat ? deliveries.flatMap(({ refusal, reason = '' }) => refusal ? [{ error: refusal, reason }] : []) : []
    const left = refusals.find(({ error }) => general.has(error)) ?? refusals.find(({ error }) => ofChat.has(error))
    if (left) return { kind: 'left', isGeneral: general.has(left.error), ...left }
    return { kind: 'accepted', deliveries }
  } catch (thrown) {
    if (thrown instanceof Unreadable) return { kind: 'refused', code: reasonCodes.payload, error: 'bad-request', reason: thrown.message }
    // The text of an unexpected error may contain a message.
    if (!isRelayError(thrown)) return { kind: 'refused', code: reasonCodes.unspecified, error: 'internal', reason: thrown instanceof Error ? thrown.name : typeof thrown }
    const { code, said } = thrown
    const reason = said.in(relay.language)
    if (general.has(code) || ofChat.has(code)) return { kind: 'left', isGeneral: general.has(code), error: code, reason }
    return { kind: 'refused', code: code === 'bad-request' ? reasonCodes.payload : reasonCodes.specific, error: code, reason }
  }
}

/** A payload is JSON if it begins like an object, unless its content type says that it is text. */
function looksLikeJson({ payload, contentType = '' }: Message): boolean {
  return !contentType.startsWith('text/') && /^\s*\{/.test(payload.toString('latin1', 0, 64))
}

function parseObject(payload: Buffer, relay: MessageRelay): object {
  const text = readText(payload, relay)
  try {
    const value: unknown = JSON.parse(text)
    return Object(value) as object
  } catch (error) {
    throw new Unreadable(write(relay.language, 'not-json', { reason: error instanceof Error ? error.message : '' }))
  }
}

function readText(payload: Buffer, { language }: MessageRelay): string {
  if (!isUtf8(payload)) throw new Unreadable(write(language, 'not-text'))
  return payload.toString()
}

/** The class is inside the relay's bundle. */
function isRelayError(thrown: unknown): thrown is RelayError {
  return thrown instanceof Error && thrown.name === 'RelayError' && 'said' in thrown
}
