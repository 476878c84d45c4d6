import { createHmac } from 'node:crypto'

/** What a secret begins with that holds its key in base64. */
const keyPrefix = 'whsec_'

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
  body: string
}

/**
 * The headers that prove, beside `webhook-id`, who sent a message and when: HMAC-SHA256 as the Standard Webhooks specification has it
 * (https://www.standardwebhooks.com). The bytes behind `whsec_` are the key, or else those of the whole text in UTF-8.
 *
 * @param secret one for which {@link isSigningSecret} holds
 */
export function signatureHeaders(secret: string, { id, time, body }: SignedMessage) {
  const key = secret.startsWith(keyPrefix) ? Buffer.from(secret.slice(keyPrefix.length), 'base64') : secret
  const timestamp = String(Math.floor(time / 1000))
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
}
