import { setTimeout } from 'node:timers/promises'
import { networkReason, postJson, type Endpoint, type PostOptions } from '../lib/endpoint'
import type { Language } from '../texts/language'
import { writeAlert, type Alert } from './texts'
import { say, type Text } from '../texts/text'

/** The waits before the second and the third attempt at the last receiver, in milliseconds. */
const pauses = [2_000, 15_000]
/** The most subjects of one post. */
const maxSubjects = 100

/** The body of a post. */
export interface AlertBody {
  alert: Alert['kind']
  state: 'firing' | 'resolved'
  text: string
  /** The number of all subjects. At most the first hundred follow. */
  total: number
  subjects: { target?: string, bot?: string, since: string, reason?: string, times?: number }[]
}

/** An alert as JSON. */
export function toBody(alert: Alert, language: Language): AlertBody {
  const { kind, isOver, subjects } = alert
  return {
    alert: kind,
    state: isOver ? 'resolved' : 'firing',
    text: writeAlert(alert, language),
    total: subjects.length,
    subjects: subjects.slice(0, maxSubjects).map(({ since, ...names }) => ({ ...names, since: new Date(since).toISOString() })),
  }
}

/**
 * Posts an alert: up to three times to the last receiver, otherwise once. The receiver may get it more than once if an answer was lost.
 *
 * @param options of each attempt
 * @returns the reason why the alert did not arrive, without the address and the answer; `undefined` if it has arrived
 */
export async function postAlert(
  endpoint: Endpoint, body: AlertBody, isLast: boolean, options: PostOptions,
): Promise<Text | undefined> {
  let failure = await post(endpoint, body, options)
  for (const pause of isLast ? pauses : []) {
    if (failure === undefined) return
    await setTimeout(pause, undefined, { signal: options.stop }).catch(() => undefined)
    if (options.stop.aborted) break
    failure = await post(endpoint, body, options)
  }
  return failure
}

function post(endpoint: Endpoint, body: AlertBody, options: PostOptions): Promise<Text | undefined> {
  const read = ({ ok, status }: Response) => ok ? undefined : say('status-code', { status })
  return postJson(endpoint, JSON.stringify(body), options, read).catch(networkReason)
}
