import { fieldsOf } from '../../message/parse'
import { cleanWording } from '../failure'
import { toText } from '../incoming'
import { SendError, type Receipt } from '../port'
import { classify } from '../qq'

/** Without a status the code alone counts. */
const okStatuses: ReadonlySet<unknown> = new Set(['ok', ''])
const failedStatuses: ReadonlySet<unknown> = new Set(['failed', ''])

/** A whole answer: success with data, or a failure. */
export type Answer = { isOk: true, data: unknown } | { isOk: false, failure: SendError }

/**
 * Reads the whole answer to a call.
 *
 * In OneBot 11 `status` and `retcode` say the same twice: `ok` and 0, `async` and 1, or `failed` and another number. The answer counts when
 * `retcode` is a number and `status`, if present, agrees with it. Only with `failed` is 1 a failure: Lagrange answers a failed upload so.
 * Source: https://github.com/botuniverse/onebot-11/blob/master/communication/http.md
 *
 * @throws SendError `unanswered` for an answer that is neither a success nor a failure
 */
export function readAnswer(answer: unknown): Answer {
  const { status: given, retcode, data, wording, message, msg } = fieldsOf(answer)
  const status = given ?? ''
  if (status === 'async') throw new SendError('unanswered', 'the platform carries it out later and does not tell how that ends')
  if (retcode === 0 && okStatuses.has(status)) return { isOk: true, data }
  const code = Number.isInteger(retcode) ? Number(retcode) : 0
  const isFailure = code === 1 ? status === 'failed' : code !== 0 && failedStatuses.has(status)
  if (!isFailure) throw new SendError('unanswered', 'the answer of the platform cannot be read')
  const texts = [wording, message, msg].map(toText).filter(Boolean)
  const { outcome = 'refused', cause: causeId, isFinal } = classify(code, texts.join('\n')) ?? {}
  if (outcome === 'sent') return { isOk: true, data: undefined }
  return { isOk: false, failure: new SendError(outcome, cleanWording(texts[0] ?? '') ?? `retcode ${code}`, { causeId, isFinal }) }
}

/**
 * Reads the data of a success.
 *
 * @throws SendError `unanswered`, `refused`, `unsent`
 */
export function readData(answer: unknown): unknown {
  const read = readAnswer(answer)
  if (!read.isOk) throw read.failure
  return read.data
}

/**
 * Reads the answer to a send.
 *
 * @throws SendError `unanswered`, `refused`, `unsent`
 */
export function readReceipt(answer: unknown): Receipt {
  const id = toId(fieldsOf(readData(answer)).message_id)
  return { messageIds: id === undefined ? [] : [id] }
}

/** An ID as text. The ID of a message may be negative. */
export function toId(value: unknown): string | undefined {
  return toText(value) || undefined
}

/** An ID as a number where that is exact: implementations differ in whether they accept a text. */
export function toNumber(id: string): number | string {
  const number = Number(id)
  return Number.isSafeInteger(number) ? number : id
}
