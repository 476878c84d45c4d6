import { RelayError } from '../errors'
import { onAbort } from '../lib/abort'
import { SendError } from '../platform/port'
import type { Runtime } from './runtime'

/**
 * Waits for what a platform was asked beside the sending of messages, for as long as a call may take.
 *
 * @throws RelayError `refused`, `unsent`, `unanswered`, `stopping`
 */
export async function ask<T>(work: Promise<T>, { policy: { timeout }, stop }: Pick<Runtime, 'policy' | 'stop'>): Promise<T> {
  let end: () => void = () => undefined
  const tooLate = new Promise<never>((_, reject) => {
    const timer = setTimeout(() => reject(new SendError('unanswered')), timeout)
    const unwatch = onAbort(stop, () => reject(new RelayError('stopping')))
    end = () => {
      clearTimeout(timer)
      unwatch()
    }
  })
  try {
    return await Promise.race([work, tooLate])
  } catch (error) {
    throw error instanceof SendError ? describe(error) : error
  } finally {
    end()
  }
}

const texts: Readonly<Record<SendError['outcome'], string>> = {
  refused: 'the platform refused it',
  suppressed: 'the platform refused it',
  unsent: 'no bot is online: try again later',
  unanswered: 'the platform did not answer in time',
}

function describe(cause: SendError): RelayError {
  const { outcome, wording } = cause
  return new RelayError(outcome, wording === undefined ? texts[outcome] : `${texts[outcome]}: ${wording}`, { cause, logText: texts[outcome] })
}
