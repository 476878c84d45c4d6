import { createHmac } from 'node:crypto'
import { equalsSecret } from './secret'

/** What a secret begins with that holds its key in base64. */
const keyPrefix = 'whsec_'

/** How far the clocks of both sides may differ, and for how long what was seen on its way could be sent again, in milliseconds. */
const tolerance = 5 * 60_000

/** Whether a text can be a secret: `whsec_` and then the key in base64 with its padding, or any other text but an empty one. */
export function isSigningSecret(text: string): boolean {
  if (!text.startsWith(keyPrefix)) return text !== ''
  const key = text.slice(keyPrefix.length)
  // Node.js skips what is no base64, so only a text that comes out again is one.
  return key !== '' && Buffer.from(key, 'base64').toString('base64') === key
}

/** What is signed. */
export interface SignedMessage {
  /** `webhook-id`: the same each time that the same is sent. It must hold no dot, which separates the parts of what is signed. */
  id: string
  /** When it is sent, in milliseconds since the epoch. */
  time: number
  /** The body, as it is sent. */
  body: Buffer | string
}

/**
 * The headers that prove, beside `webhook-id`, who sent a message and when: HMAC-SHA256 as the Standard Webhooks specification has it
 * (https://www.standardwebhooks.com). The bytes behind `whsec_` are the key, or else those of the whole text in UTF-8.
 *
 * @param secret one for which {@link isSigningSecret} holds
 */
export function signatureHeaders(secret: string, { id, time, body }: SignedMessage) {
  const timestamp = String(Math.floor(time / 1000))
  return { 'webhook-timestamp': timestamp, 'webhook-signature': sign(secret, id, timestamp, body) }
}

/** A message as it came, with the headers that are to prove where it comes from. */
export interface ReceivedMessage {
  /** `webhook-id` */
  id: string
  /** `webhook-timestamp`: whole seconds since the epoch. */
  timestamp: string
  /** `webhook-signature`: one signature, or several with blanks between them. */
  signature: string
  /** The bytes of the body, as they came. */
  body: Buffer
}

/**
 * Whether a message was signed with a secret, and about now. Compared in constant time.
 *
 * @param now in milliseconds since the epoch
 */
export function isSignedWith(secret: string, { id, timestamp, signature, body }: ReceivedMessage, now = Date.now()): boolean {
  // A key that is no base64 would become a shorter one, or none at all.
  if (!isSigningSecret(secret) || !isRecent(timestamp, now)) return false
  const right = sign(secret, id, timestamp, body)
  return signature.split(' ').some(each => equalsSecret(each, right))
}

/** Whether a time, in whole seconds since the epoch, is less than five minutes from now. */
export function isRecent(timestamp: string, now = Date.now()): boolean {
  return /^\d{1,12}$/.test(timestamp) && Math.abs(Number(timestamp) * 1000 - now) < tolerance
}

function sign(secret: string, id: string, timestamp: string, body: Buffer | string): string {
  const key = secret.startsWith(keyPrefix) ? Buffer.from(secret.slice(keyPrefix.length), 'base64') : secret
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`
}
