/**
 * Which part of a conversation is in the document: messages[start] up to, not including, messages[end]. A conversation can have
 * any length; the document cannot.
 * @typedef {{ start: number, end: number }} MessageWindow
 */

/** The most messages in the document at once. */
export const LIMIT = 500

/** How many are added per step, and how many remain when the limit is passed. */
export const STEP = 200

/** The end of a conversation of that many messages. */
export function latest(total) {
  return { start: Math.max(0, total - STEP), end: total }
}

/** The window after messages were added: it follows a reader at the end, and only fills up below one who is looking at older ones. */
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

/** A window that has the message at this index in it: the same one if it has. */
export function around(current, index, total) {
  if (index >= current.start && index < current.end) return current
  const start = Math.max(0, index - STEP / 2)
  return { start, end: Math.min(total, start + STEP) }
}
