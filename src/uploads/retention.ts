/** How long an uploaded file stays, in milliseconds (specification, section 8). */
export const defaultRetention = 24 * 60 * 60 * 1000

/**
 * Tells whether a file is past its time. All arguments are in milliseconds.
 *
 * @param modifiedAt when the file was last written, since the epoch
 * @param now since the epoch
 */
export function isExpired(modifiedAt: number, now: number, retention = defaultRetention): boolean {
  return now - modifiedAt > retention
}
