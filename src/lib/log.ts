/**
 * Makes foreign text fit for one line of a log: line breaks, control characters, marks that change the direction of writing and lone
 * surrogates become U+FFFD.
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '\ufffd')
}

/** A word of a caller or of the settings, cut to 64 characters, as errors and warnings repeat it. */
export function quoted(word: string): string {
  return JSON.stringify(printable(word.slice(0, 64)))
}

/** An unexpected error: its text, in one line of at most 200 characters, and its stack. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  return [printable(`${error.name}: ${error.message}`.slice(0, 200)), ...framesOf(error).map(frame => `    at ${frame}`)].join('\n')
}

/** An error whose text may hold the content of a message: its class and the place where it was thrown. */
export function describePlace(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  return `"${printable(error.name)}" at "${printable(framesOf(error)[0] ?? 'unknown')}"`
}

/** The places in a stack. The message stands before them, and may itself hold a line that looks like one. */
function framesOf({ message, stack = '' }: Error): string[] {
  return [...stack.slice(stack.indexOf(message) + message.length).matchAll(/^\s+at (.*)$/gm)].map(([, place = '']) => place)
}
