/** The form of commands if the settings have no list. */
export interface CommandPattern {
  prefix: string
  /** The length of the command name, in Unicode code points. */
  length: number
}

/** The parts of a command. */
export interface CommandMatch {
  command: string
  /** Everything after the separating blank, unchanged. May be empty. */
  content: string
}

/**
 * Splits a command: the prefix, exactly `length` code points, one blank (U+0020), and the rest. The name may contain any character,
 * including blanks and line breaks: a callback gives no reply to an unknown command.
 */
export function matchCommand(text: string, { prefix, length }: CommandPattern): CommandMatch | undefined {
  // Nearly every message ends here. Of the others, only the name is read.
  if (!text.startsWith(prefix)) return
  let end = prefix.length
  for (let count = 0; count < length; count++) {
    const codePoint = text.codePointAt(end)
    if (codePoint === undefined) return
    end += codePoint > 0xffff ? 2 : 1
  }
  if (text[end] !== ' ') return
  return { command: text.slice(prefix.length, end), content: text.slice(end + 1) }
}

/** Splits a command whose name ends at the first white space, or with the message. */
export function matchNamed(text: string, prefix: string): CommandMatch | undefined {
  if (!text.startsWith(prefix)) return
  const [, command = '', content = ''] = /^(\S*)(?:\s([^]*))?$/.exec(text.slice(prefix.length)) ?? []
  return command === '' ? undefined : { command, content }
}
