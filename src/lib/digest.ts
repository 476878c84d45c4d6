import { createHash } from 'node:crypto'

/** SHA-256 of a text that may come in pieces, in hexadecimal. */
export function digest(...pieces: readonly string[]): string {
  const hash = createHash('sha256')
  for (const piece of pieces) hash.update(piece)
  return hash.digest('hex')
}
