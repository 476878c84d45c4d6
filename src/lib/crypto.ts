import { createHash, createHmac, timingSafeEqual } from 'node:crypto'

/** SHA-256 of a text or bytes. */
export function sha256(content: Buffer | string): Buffer {
  return createHash('sha256').update(content).digest()
}

/** SHA-256 of the pieces of a text together, in hexadecimal. */
export function hash(...pieces: readonly string[]): string {
  return sha256(pieces.join('')).toString('hex')
}

/** Compares secrets by their digests, which have equal lengths, so that the time reveals nothing about the secrets. */
export function equalsSecret(candidate: Buffer | string, secret: Buffer | string): boolean {
  return timingSafeEqual(sha256(candidate), sha256(secret))
}

/** Whether a signature is the HMAC-SHA256 of these pieces together, in lowercase hexadecimal. Compared in constant time. */
export function isHmac(signature: string, secret: string, ...pieces: readonly (Buffer | string)[]): boolean {
  return equalsSecret(signature, pieces.reduce((hmac, piece) => hmac.update(piece), createHmac('sha256', secret)).digest('hex'))
}
