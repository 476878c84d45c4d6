import type { Logger } from 'koishi'
import type { RelayError } from '../errors'
import { gather } from '../lib/gather'
import type { Exchange, Route } from './routes'

/**
 * Writes the line of a request to the log: its ID, route, target, outcome and duration in milliseconds. Nothing of what was to be
 * sent is in it.
 */
export function logRequest(
  logger: Logger, exchange: Exchange, route: Pick<Route, 'path' | 'quiet'>, error: RelayError | undefined, duration: number,
): void {
  const { id, target, outcome, request, response } = exchange
  const result = error ? `${error.status} ${error.code}: ${error.logText}` : `${response.statusCode} ${outcome ?? 'ok'}`
  const about = target ?? (error?.code === 'unauthorized' ? `from ${request.socket.remoteAddress ?? 'unknown'}` : '-')
  const line = printable(`${id} ${request.method ?? '-'} ${route.path} ${about} ${result} ${duration.toFixed(1)} ms`)
  gather(process.stdout)
  // A probe that says "not ready" comes every few seconds, too; why it says so is logged elsewhere.
  if (route.quiet && (!error || error.code === 'unsent')) logger.debug('%s', line)
  else if (error && error.status >= 500) logger.warn('%s', line)
  else logger.info('%s', line)
  if (error?.code === 'internal' && error.cause !== undefined) logger.warn('%s', `${id} ${describe(error.cause)}`)
}

/** An unexpected error: what it says in one line, and its stack. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  const { name, message, stack = '' } = error
  const frames = stack.slice(stack.indexOf(message) + message.length).split('\n').filter(line => line.startsWith('    at '))
  return [printable(`${name}: ${message}`.slice(0, 200)), ...frames].join('\n')
}

/** No line break, control, direction mark or half character of foreign text reaches the log. */
function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '\ufffd')
}
