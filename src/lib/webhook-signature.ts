import { createHmac } from 'node:crypto'
import { equalsSecret } from './crypto'

/** The prefix of a secret that contains its key in base64. */
const keyPrefix = 'whsec_'
/** How far the clocks of both sides may differ, and so for how long a recorded message could be replayed, in milliseconds. */
const tolerance = 5 * 60_000
/** The most signatures to check per message. A sender that rotates its secret sends one per secret; an attacker may send thousands. */
const maxSignatures = 10

/** Whether a text can be a secret: `whsec_` and then the key in base64 with its padding, or any other non-empty text. */
export function isSigningSecret(text: string): boolean {
  if (!text.startsWith(keyPrefix)) return text !== ''
  const key = text.slice(keyPrefix.length)
  // Node.js skips characters that are not base64, so only an exact round trip is valid.
  return key !== '' && Buffer.from(key, 'base64').toString('base64') === key
}

/**
 * The headers that, besides `webhook-id`, sign a message with HMAC-SHA256 (https://www.standardwebhooks.com).
 *
 * @param secret one for which {@link isSigningSecret} holds
 * @param message `id` is the `webhook-id`, which contains no dot and stays the same for a retry; `time` is in milliseconds since the epoch
 */
export function signatureHeaders(secret: string, { id, time, body }: { id: string, time: number, body: Buffer | string }) {
  const timestamp = String(Math.floor(time / 1000))
  return { 'webhook-timestamp': timestamp, 'webhook-signature': sign(secret, id, timestamp, body) }
}

/** A received message with the values of its signature headers; the timestamp is in whole seconds since the epoch. */
export interface ReceivedMessage { id: string, timestamp: string, signature: string, body: Buffer }

/** Whether a message was signed with a secret within five minutes of now. Compared in constant time. */
export function isSignedWith(secret: string, { id, timestamp, signature, body }: ReceivedMessage): boolean {
  // From malformed base64, Node.js would decode a shorter or empty key.
  if (!isSigningSecret(secret) || !isRecent(timestamp)) return false
  const right = sign(secret, id, timestamp, body)
  return signature.split(' ', maxSignatures).some(each => equalsSecret(each, right))
}

/** Whether a time, in whole seconds since the epoch, is less than `within` from now, in milliseconds; five minutes by default. */
export function isRecent(timestamp: string, within = tolerance): boolean {
  return /^\d{1,12}$/.test(timestamp) && Math.abs(Number(timestamp) * 1000 - Date.now()) < within
}

/** Signs a message. The key is the base64 after `whsec_`, or else the whole secret in UTF-8. */
function sign(secret: string, id: string, timestamp: string, body: Buffer | string): string {
  const key = secret.startsWith(keyPrefix) ? Buffer.from(secret.slice(keyPrefix.length), 'base64') : secret
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`
}
