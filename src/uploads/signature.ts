import { createHash, createHmac, timingSafeEqual } from 'node:crypto'

/**
 * Signs a link to an uploaded file.
 *
 * @param id file ID
 * @param expiresAt when the link ends, in milliseconds since the epoch
 * @param key 32 random bytes
 * @returns HMAC-SHA256 in base64url
 */
export function sign(id: string, expiresAt: number, key: Uint8Array): string {
  // The number comes first and ends at the line break, so that no two pairs give the same text.
  return createHmac('sha256', key).update(`${expiresAt}\n${id}`).digest('base64url')
}

/**
 * Tells whether a link was signed with this key for this file and this end, and has not ended. The arguments are those of
 * {@link sign}; `now` is in milliseconds since the epoch.
 */
export function verify(id: string, expiresAt: number, signature: string, key: Uint8Array, now: number): boolean {
  const matches = timingSafeEqual(digest(signature), digest(sign(id, expiresAt, key)))
  return matches && now < expiresAt
}

/** Gives both sides one length, so that the comparison takes the same time whatever was sent. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
