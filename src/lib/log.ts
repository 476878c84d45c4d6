/**
 * Makes text of unknown origin fit for one line of a log: a line break, a control character, a mark that changes the direction of
 * writing and half a character each become U+FFFD.
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '\ufffd')
}

/** An unexpected error with what it says, in one line of at most 200 characters, and below it its stack. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  return [printable(`${error.name}: ${error.message}`.slice(0, 200)), ...framesOf(error).map(frame => `    at ${frame}`)].join('\n')
}

/** The same for an error whose text may hold what was to be sent: its class and the place where it was thrown. */
export function describePlace(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  return `"${printable(error.name)}" at "${printable(framesOf(error)[0] ?? 'unknown')}"`
}

/** The lines of the stack that name a place. The message stands before them, and a part of it may look like such a line. */
function framesOf({ message, stack = '' }: Error): string[] {
  return [...stack.slice(stack.indexOf(message) + message.length).matchAll(/^\s+at (.*)$/gm)].map(([, place = '']) => place)
}
