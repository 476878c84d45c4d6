import type { RelayError } from '../../errors'
import type { Delivery, Results } from '../delivery/delivery'
import { isPassing, mayHaveArrived, outcomeOf } from '../delivery/delivery'
import type { SendEnd } from '../send/send'

/** What follows from the end of a send. */
export type Conclusion
  /** The delivery has these results. */
  = | { kind: 'ends', results: Results }
    /** It tries its next way; without one it ends. */
    | { kind: 'goes on', results: Results }
    /** It could not leave for now. */
    | { kind: 'waits', results: Results }
    /** A digest that could not leave: its members wait, each by itself if `isAlone`, or, with a `reason`, go on to their next ways. */
    | { kind: 'falls apart', isAlone: boolean, reason: RelayError | undefined }

/**
 * Decides what follows from the end of a send.
 *
 * @param isDigest whether the delivery is a digest with members that have not ended
 * @param hasStopped whether the relay stops: the next one looks for open messages
 */
export function conclude(
  { deferred, flow: { route } }: Delivery, { results, failure }: SendEnd, isDigest: boolean, hasStopped: boolean,
): Conclusion {
  const waits = deferred && results.some(result => isPassing(result) || (hasStopped && outcomeOf(result) === 'unanswered'))
  if (isDigest && !hasStopped && !results.some(mayHaveArrived)) {
    const isOfChat = !waits && failure?.last.isAboutTarget === true
    return { kind: 'falls apart', isAlone: !waits, reason: isOfChat ? failure.toRelayError() : undefined }
  }
  if (waits) return { kind: 'waits', results }
  return { kind: route && !hasStopped ? 'goes on' : 'ends', results }
}
