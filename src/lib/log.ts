import type { Logger } from 'koishi'
import type { Language } from '../texts/language'
import type { Text } from '../texts/text'

/**
 * Makes foreign text safe for one log line: line breaks, control characters, format characters such as direction marks, and lone
 * surrogates become U+FFFD.
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '\ufffd')
}

/** Reports the present warnings about a topic, such as a setting. They replace the earlier ones. */
export type Warn = (topic: string, lines: readonly Text[]) => void

/** Quotes a word of a caller or of the settings for errors and warnings, cut to 64 characters. */
export function quoted(word: string): string {
  return JSON.stringify(printable(word.slice(0, 64)))
}

/** Describes an unexpected error: its text, in one line of at most 200 characters, and its stack. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  return [printable(`${error.name}: ${error.message}`.slice(0, 200)), ...framesOf(error).map(frame => `    at ${frame}`)].join('\n')
}

/** Describes an error whose text may contain a message: its class and the place where it was thrown, without its text. */
export function describePlace(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  return `"${printable(error.name)}" at "${printable(framesOf(error)[0] ?? 'unknown')}"`
}

/** The frames of a stack. The error's message precedes them and is skipped, because it may contain a line that looks like a frame. */
function framesOf({ message, stack = '' }: Error): string[] {
  return [...stack.slice(stack.indexOf(message) + message.length).matchAll(/^\s+at (.*)$/gm)].map(([, place = '']) => place)
}

/** A log of the bot in the language of its operator. Each text becomes one line, whatever foreign words it has. */
export class Log {
  constructor(private readonly logger: Logger, readonly language: Language) {}

  debug(text: Text): void {
    this.logger.debug('%s', this.line(text))
  }

  info(text: Text): void {
    this.logger.info('%s', this.line(text))
  }

  /** @param stack further lines, such as those of `describeError` */
  warn(text: Text, stack?: string): void {
    this.logger.warn('%s', this.line(text, stack))
  }

  error(text: Text): void {
    this.logger.error('%s', this.line(text))
  }

  private line(text: Text, stack?: string): string {
    return printable(text.in(this.language)) + (stack === undefined ? '' : ` ${stack}`)
  }
}
