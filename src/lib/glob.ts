/**
 * Whether a text fits a pattern, in which `*` stands for any characters, also for none. Nothing else has a meaning of its own, and case
 * counts.
 */
export function matchesGlob(pattern: string, text: string): boolean {
  const [start = '', ...parts] = pattern.split('*')
  const end = parts.pop()
  if (end === undefined) return text === pattern
  if (!text.startsWith(start)) return false
  let at = start.length
  // The first place that fits leaves the most for what follows.
  for (const part of parts) {
    const place = text.indexOf(part, at)
    if (place < 0) return false
    at = place + part.length
  }
  return text.length - end.length >= at && text.endsWith(end)
}
