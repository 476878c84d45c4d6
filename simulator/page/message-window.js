/**
 * The part of a conversation that is in the document: messages[start] up to, but not including, messages[end]. A conversation can have any
 * length, the document cannot.
 * @typedef {{ start: number, end: number }} MessageWindow
 */

/** The most messages in the document at once. */
export const LIMIT = 500

/** How many messages a step adds, and how many remain after the limit is exceeded. */
export const STEP = 200

/** The window at the end of a conversation of `total` messages. */
export function latest(total) {
  return { start: Math.max(0, total - STEP), end: total }
}

/**
 * The window after new messages. If the reader is at the end, it follows; if the reader looks at older messages, it only fills up below.
 */
export function grown({ start, end }, total, following) {
  if (!following) return { start, end: Math.max(end, Math.min(total, start + LIMIT)) }
  return total - start > LIMIT ? latest(total) : { start, end: total }
}

/** One step towards the beginning. */
export function earlier({ start, end }) {
  const first = Math.max(0, start - STEP)
  return { start: first, end: Math.min(end, first + LIMIT) }
}

/** One step towards the end. */
export function later({ start, end }, total) {
  const last = Math.min(total, end + STEP)
  return { start: Math.max(start, last - LIMIT), end: last }
}

/** A window that contains the message at an index: the present one if possible. */
export function around(current, index, total) {
  if (index >= current.start && index < current.end) return current
  const start = Math.max(0, index - STEP / 2)
  return { start, end: Math.min(total, start + STEP) }
}
