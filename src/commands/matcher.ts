/** What a message has to look like to be a command, where the settings name none. */
export interface CommandPattern {
  prefix: string
  /** Length of the command name, in Unicode code points. */
  length: number
}

/** A message that is a command, taken apart. */
export interface CommandMatch {
  command: string
  /** Everything behind the separating blank, letter for letter. May be empty. */
  content: string
}

/**
 * Takes a command apart: the prefix, exactly `length` code points, one blank (U+0020), and the rest. The name may hold any
 * character, a blank or a line break included: a callback that knows no such command answers with no reply.
 */
export function matchCommand(text: string, { prefix, length }: CommandPattern): CommandMatch | undefined {
  // Nearly every message ends here, and of the others no more is looked at than the name is long.
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

/** Takes a command apart whose name ends at the first blank or line break, or with the message. */
export function matchNamed(text: string, prefix: string): CommandMatch | undefined {
  if (!text.startsWith(prefix)) return
  const [, command = '', content = ''] = /^(\S*)(?:\s([^]*))?$/.exec(text.slice(prefix.length)) ?? []
  return command === '' ? undefined : { command, content }
}
