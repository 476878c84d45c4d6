import { RelayError } from '../errors'
import type { Route } from './routes'

/** How long the check may take, in milliseconds: a probe that gets no answer learns less than one that gets "not ready". */
const patience = 2_000

/** `GET /readyz`: whether a message could be sent now, to anyone. It tells nothing else, not even why not. */
export function readyRoute(isReady: () => Promise<boolean>): Route {
  return {
    path: '/readyz',
    method: 'GET',
    open: true,
    quiet: true,
    async handle() {
      if (!await inTime(isReady)) throw new RelayError('unsent', 'not ready')
      return { data: { ready: true } }
    },
  }
}

/** Whether the check says yes before the time is over. */
async function inTime(isReady: () => Promise<boolean>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<boolean>(resolve => {
    timer = setTimeout(() => resolve(false), patience)
  })
  try {
    return await Promise.race([isReady(), over])
  } catch {
    return false
  } finally {
    clearTimeout(timer)
  }
}
