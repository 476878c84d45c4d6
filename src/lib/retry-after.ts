/** The wait of a `Retry-After`, in milliseconds: seconds, or a date (RFC 9110, section 10.2.3); `undefined` for anything else. */
export function readRetryAfter(text: string): number | undefined {
  const wait = /^[\d.]+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return wait > 0 ? wait : undefined
}
