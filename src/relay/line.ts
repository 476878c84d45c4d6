import { writeTarget } from '../message/target'
import { writeResults, type DeliveryRecord } from './delivery'
import { fromRow } from './row'

/** No value holds it: IDs and digests have none, targets no control characters, and JSON and URIs write them otherwise. */
const separator = '\t'

/** A delivery as one line of text. It begins with the ID, so that lines sort as deliveries do. */
export function writeLine(record: DeliveryRecord): string {
  const { id, state, target, mode, deferred, bot, createdAt, updatedAt, expiresAt, attempts, results, sending, key, fingerprint } = record
  // No array that is joined: it is made for each send, and V8 puts it where it is collected last.
  return `${id}\t${state}\t${writeTarget(target)}\t${mode}\t${deferred}\t${encodeURIComponent(bot)}\t${createdAt}\t${updatedAt}\t${expiresAt ?? ''}\t${attempts}`
    + `\t${writeResults(results)}\t${sending ? JSON.stringify(sending) : ''}\t${key ?? ''}\t${fingerprint ?? ''}`
}

/** Whether a line may be one of a delivery in this state, or to this target. Cheaper than to read it. */
export function mayHold(line: string, value: string): boolean {
  return line.includes(separator + value + separator)
}

/**
 * Reads what `writeLine` wrote.
 *
 * @throws Error when it is something else
 */
export function readLine(line: string): DeliveryRecord {
  const [
    id = '', state = '', target = '', mode = '', deferred, bot = '', createdAt, updatedAt, expiresAt, attempts, results = '', sending, key,
    fingerprint,
  ] = line.split(separator)
  return fromRow({
    id, state, target, mode,
    deferred: deferred === 'true',
    bot: decodeURIComponent(bot),
    createdAt: Number(createdAt),
    updatedAt: Number(updatedAt),
    expiresAt: expiresAt ? Number(expiresAt) : null,
    attempts: Number(attempts),
    results,
    sending: sending || null,
    key: key || null,
    fingerprint: fingerprint || null,
  })
}
