import type { Logger } from 'koishi'
import { RelayError } from '../errors'

/** How long to wait before trying again what failed here and not at the platform, in milliseconds. */
export const pause = 1_000

/** Waits a while, in milliseconds, but not past the stop. */
export function sleep(time: number, stop: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const end = (): void => {
      clearTimeout(timer)
      stop.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, time)
    stop.addEventListener('abort', end)
    if (stop.aborted) end()
  })
}

/** Lets everything else that is to be done have its turn: the statements of an embedded database do not. */
export function breathe(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

export interface Persistence {
  logger: Logger
  stop: AbortSignal
  /** Told of each failure. */
  onFailure?: () => void
}

/**
 * Writes something down, however long the database takes to come back.
 *
 * @throws RelayError `stopping` when it is not back before the stop
 */
export async function persist<T>(write: () => Promise<T>, { logger, stop, onFailure }: Persistence): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await write()
    } catch (error) {
      if (failures === 0) logger.warn('%s', `the database cannot be written to: ${describe(error)}`)
    }
    onFailure?.()
    await sleep(pause, stop)
    if (stop.aborted) throw new RelayError('stopping')
  }
}

/** Names an error. Its text may hold the values of a statement, and with them messages. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  const code: unknown = Reflect.get(error, 'code')
  return typeof code === 'string' || typeof code === 'number' ? `${error.name} ${code}` : error.name
}
