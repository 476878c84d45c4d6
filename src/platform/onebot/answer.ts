import { fieldsOf, toText } from '../../lib/shape'
import { cleanWording } from '../failure'
import { SendError, type Receipt } from '../port'
import { classify, withoutCall } from '../qq-answers'
import { unreadable } from '../web'

/**
 * Reads the data of the whole answer to a call.
 *
 * In OneBot 11 `status` and `retcode` say the same twice: `ok` and 0, `async` and 1, or `failed` and another number. The answer counts when
 * `retcode` is a number and `status`, if present, agrees with it. Only with `failed` is 1 a failure. A failed upload of Lagrange has its
 * reason in place of the status.
 * Sources: https://github.com/botuniverse/onebot-11/blob/master/communication/http.md; LagrangeDev/Lagrange.Core, branch v1,
 * `Lagrange.OneBot/Core/Operation/File/UploadGroupFileOperation.cs`
 *
 * @throws SendError for a failure; `unanswered` for an answer that is neither a success nor a failure
 */
export function readData(answer: unknown): unknown {
  const { status: given, retcode, data, wording, message, msg } = fieldsOf(answer)
  // Without a status the code alone counts.
  const status = given ?? ''
  if (retcode === 0 && (status === 'ok' || status === '')) return data
  const code = Number.isInteger(retcode) ? Number(retcode) : 0
  const isFailure = code !== 0 && (status === 'failed' || (typeof status === 'string' && status !== 'ok' && code !== 1))
  if (!isFailure) throw unreadable()
  const texts = [wording, message, msg, status === 'failed' ? '' : status].map(toText).filter(Boolean).map(withoutCall)
  const { outcome = 'refused', cause: causeId, isFinal } = classify(code, texts.join('\n')) ?? {}
  if (outcome === 'sent') return
  throw new SendError(outcome, cleanWording(texts[0] ?? '') ?? `retcode ${code}`, { causeId, isFinal })
}

/** Reads the answer to a send. @throws SendError */
export function readReceipt(answer: unknown): Receipt {
  const id = toText(fieldsOf(readData(answer)).message_id)
  return { messageIds: id === '' ? [] : [id] }
}

/** An ID as a number where that is exact: implementations differ in whether they accept a text. */
export function toNumber(id: string): number | string {
  const number = Number(id)
  return Number.isSafeInteger(number) ? number : id
}
