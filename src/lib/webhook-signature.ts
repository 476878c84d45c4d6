import { createHmac } from 'node:crypto'
import { equalsSecret } from './crypto'

/** Begins a secret that holds its key in base64. */
const keyPrefix = 'whsec_'
/** How far the clocks of both sides may differ, and for how long a recorded message could be sent again, in milliseconds. */
const tolerance = 5 * 60_000
/** How many signatures of a message are looked at: one for each secret of a sender that changes it, and not the thousands of a stranger. */
const maxSignatures = 10

/** Whether a text can be a secret: `whsec_` and then the key in base64 with its padding, or any other text but an empty one. */
export function isSigningSecret(text: string): boolean {
  if (!text.startsWith(keyPrefix)) return text !== ''
  const key = text.slice(keyPrefix.length)
  // Node.js skips characters that are not base64, so only an exact round trip is valid.
  return key !== '' && Buffer.from(key, 'base64').toString('base64') === key
}

/**
 * The headers that, beside `webhook-id`, sign a message with HMAC-SHA256 (https://www.standardwebhooks.com).
 *
 * @param secret one for which {@link isSigningSecret} holds
 * @param message with its `webhook-id`, which holds no dot and stays the same when it is sent again, and its time in milliseconds since the
 *   epoch
 */
export function signatureHeaders(secret: string, { id, time, body }: { id: string, time: number, body: Buffer | string }) {
  const timestamp = String(Math.floor(time / 1000))
  return { 'webhook-timestamp': timestamp, 'webhook-signature': sign(secret, id, timestamp, body) }
}

/** A received message with the values of its signature headers; the timestamp is in whole seconds since the epoch. */
export interface ReceivedMessage { id: string, timestamp: string, signature: string, body: Buffer }

/** Whether a message was signed with a secret within five minutes of now. Compared in constant time. */
export function isSignedWith(secret: string, { id, timestamp, signature, body }: ReceivedMessage): boolean {
  // Node.js would make a shorter or empty key of malformed base64.
  if (!isSigningSecret(secret) || !isRecent(timestamp)) return false
  const right = sign(secret, id, timestamp, body)
  return signature.split(' ', maxSignatures).some(each => equalsSecret(each, right))
}

/** Whether a time, in whole seconds since the epoch, is less than five minutes from now, or than the milliseconds given. */
export function isRecent(timestamp: string, within = tolerance): boolean {
  return /^\d{1,12}$/.test(timestamp) && Math.abs(Number(timestamp) * 1000 - Date.now()) < within
}

/** The key is the bytes behind `whsec_`, or else the whole text in UTF-8. */
function sign(secret: string, id: string, timestamp: string, body: Buffer | string): string {
  const key = secret.startsWith(keyPrefix) ? Buffer.from(secret.slice(keyPrefix.length), 'base64') : secret
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`
}
