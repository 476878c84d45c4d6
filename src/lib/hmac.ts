import { createHmac, timingSafeEqual } from 'node:crypto'

/**
 * Whether a signature is the HMAC-SHA256 of what was signed, in small hexadecimal digits. Compared in constant time; one of another
 * length, or of other characters, is wrong like any other.
 *
 * @param pieces what was signed, one behind the other
 */
export function isHmac(signature: string, secret: string, ...pieces: readonly (Buffer | string)[]): boolean {
  const hmac = createHmac('sha256', secret)
  for (const piece of pieces) hmac.update(piece)
  const [given, right] = [Buffer.from(signature), Buffer.from(hmac.digest('hex'))]
  // How long a right one is, everybody knows.
  return given.length === right.length && timingSafeEqual(given, right)
}
