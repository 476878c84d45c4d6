import { createHash, timingSafeEqual } from 'node:crypto'

/**
 * Tells whether both are the same. Digests of one length are compared, so that the time that it takes tells nothing about the
 * secret, its length included.
 */
export function equalsSecret(candidate: Buffer | string, secret: Buffer | string): boolean {
  return timingSafeEqual(sha256(candidate), sha256(secret))
}

/** By which a secret is compared, and need not be known. */
export function sha256(text: Buffer | string): Buffer {
  return createHash('sha256').update(text).digest()
}
