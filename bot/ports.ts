// Where the servers of the bot can listen.
import { Logger } from 'koishi'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { codeOf } from '../src/errors'

/** Where a server listens. */
export interface Address {
  host: string
  port: number
}

const logger = new Logger('console')

/** How many ports are tried, one after another. */
const attempts = 20

/**
 * Finds where the console can listen: at the port that is wanted, or at the next one that is free.
 *
 * @returns `undefined` where it can listen nowhere, which the log says
 */
export async function findAddress({ host, port }: Address): Promise<Address | undefined> {
  for (let candidate = port; candidate < Math.min(port + attempts, 65_536); candidate++) {
    const reason = await tryToListen(host, candidate)
    if (reason === undefined) {
      if (candidate !== port) logger.warn('port %d is taken: the console takes %d; set CONSOLE_PORT to choose', port, candidate)
      return { host, port: candidate }
    }
    if (reason === 'EADDRINUSE') continue
    logger.warn('there is no console: it cannot listen on %s:%d (%s); set CONSOLE_HOST or CONSOLE_PORT', host, candidate, reason)
    return
  }
  logger.warn('there is no console: %d ports from %d on are taken; set CONSOLE_PORT', attempts, port)
}

/** @returns why it cannot be done, `undefined` when it can */
export async function tryToListen(host: string, port: number): Promise<string | undefined> {
  const probe = createServer()
  try {
    await once(probe.listen(port, host), 'listening')
  } catch (error) {
    return codeOf(error)
  }
  probe.close()
  await once(probe, 'close')
}

/** A port that a variable names, or its default where the variable is blank, or malformed, which the log says. */
export function portIn(environment: NodeJS.ProcessEnv, variable: string, fallback: number): number {
  const text = environment[variable]?.trim() ?? ''
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (port > 0 && port < 65_536) return port
  if (text !== '') logger.warn('the variable %s is malformed: the default is used', variable)
  return fallback
}
