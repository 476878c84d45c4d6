import type { Logger } from 'koishi'
import { RelayError } from '../errors'
import type { Target } from '../message/model'
import { CallbackError } from './callback'
import type { Endpoint } from './endpoint'

/**
 * Writes what becomes of commands to the log: one line for each, with its ID, name, origin, outcome and duration. Neither what a
 * member wrote nor what the callback answered is in it.
 */
export function createJournal(logger: Logger) {
  return {
    listening({ label }: Endpoint, prefix: string, length: number): void {
      logger.info('listening for commands: %s and %s characters, posted to %s', printable(prefix), length, label)
    },
    refused(): void {
      logger.error('not listening for commands: the callback address is not an http(s) link')
    },
    /** Begins the entry of one command. Its duration counts from here. */
    open(id: string, command: string, { kind, id: target }: Target) {
      const start = performance.now()
      const write = (level: 'info' | 'warn', outcome: string) => {
        // Names and IDs are handed over as values: in the format itself a `%` would be read.
        logger[level]('%s command %s from %s %s: %s, %s ms',
          id, printable(command), kind, printable(target), outcome, Math.round(performance.now() - start))
      }
      return {
        info(outcome: string): void {
          write('info', outcome)
        },
        failed(outcome: string, error: unknown): void {
          write('warn', `${outcome}: ${reasonOf(error)}`)
        },
      }
    },
  }
}

/**
 * Says why, without the text of errors that are not our own: an adapter's holds all arguments of the call, the message among
 * them. Of those the class and the place are told.
 */
function reasonOf(error: unknown): string {
  if (error instanceof RelayError) return `${error.message} (${error.code})`
  if (error instanceof CallbackError) return error.message
  if (!(error instanceof Error)) return 'unknown'
  const { name, message, stack = '' } = error
  const [, place = 'unknown'] = /\n\s+at (.*)/.exec(stack.slice(stack.indexOf(message) + message.length)) ?? []
  return `${printable(name)} at ${printable(place)}`
}

/** Quotes text of unknown origin: no line break, control, direction mark or half character of it reaches a terminal. */
function printable(text: string): string {
  return `"${text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '\ufffd')}"`
}
