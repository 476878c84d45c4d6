import { RelayError } from '../../errors'
import { divideText } from '../../lib/words'
import type { Item, LongText, MessageRequest, ParsedItem, TextItem } from '../../message/model'
import { maxItems } from '../../message/parse'
import type { Account } from '../../platform/port'
import { say } from '../../texts/text'

/**
 * The items as an account takes them: errors in place of those that it cannot send.
 *
 * @throws RelayError why it takes none of them: the target is wrong, or one item of a single message is
 */
export function checkItems(account: Account, { target, mode }: Pick<MessageRequest, 'target' | 'mode'>, items: readonly ParsedItem[]): readonly ParsedItem[] {
  const checked = account.check(target, items)
  if (mode === 'single') for (const item of checked) if (item instanceof RelayError) throw item
  return checked
}

/** The assumed longest message of a platform whose limit is not known, in characters. */
const usualLength = 4000
/** How much of a long text is sent before its file, in characters. */
const excerptLength = 1000
/** The most messages of one text. A longer text leaves as a file, or is refused. */
const mostParts = 50
const tooLong = say('text-too-long', { count: mostParts })
const labelLength = `(${mostParts}/${mostParts})\n`.length

/** The files made of texts. All targets of a request share them. */
const files = new WeakMap<TextItem, Item>()

/** The longest message of an account, in UTF-16 units. */
export function longestText({ longestText }: Pick<Account, 'longestText'>): number {
  return Number.isFinite(longestText) ? longestText : usualLength
}

/**
 * Replaces texts that are too long for a platform by parts, or by an excerpt and a file.
 *
 * @param setting overrides the form that the door of the request asks for
 * @returns the same request if no text is too long
 * @throws RelayError `bad-request`
 */
export function fitTexts(
  request: MessageRequest, account: Pick<Account, 'longestText' | 'takesFiles'>, setting: LongText | '',
): MessageRequest {
  const form = setting || request.longText
  if (!form) return refuseFloods(request, account)
  const most = longestText(account)
  const isLong = (item: ParsedItem): item is TextItem => 'text' in item && item.text.length > most
  if (!request.items.some(isLong)) return request
  const fit = (item: TextItem): ParsedItem[] => {
    const parts = divideText(item.text, most - labelLength)
    const isFew = parts.length <= mostParts
    if (account.takesFiles && !(form === 'divide' && isFew)) return [{ type: 'text', text: excerptOf(item.text, most) }, fileOf(item)]
    if (!isFew) return [new RelayError('too-large', tooLong)]
    return parts.map((part, index) => ({ type: 'text', text: `(${index + 1}/${parts.length})\n${part.replace(/\r?\n$/, '')}` }))
  }
  const items = request.items.flatMap(item => isLong(item) ? fit(item) : [item])
  if (items.length > maxItems) throw new RelayError('bad-request', say('too-many-parts', { count: maxItems }))
  return { ...request, items, mode: request.longText ? 'batch' : request.mode }
}

/** Refuses texts that would fill a chat with messages: on some platforms, Koishi's adapter divides a long text. */
function refuseFloods(request: MessageRequest, { longestText }: Pick<Account, 'longestText'>): MessageRequest {
  const isFlood = (item: ParsedItem): boolean => 'text' in item && item.text.length > mostParts * longestText
  if (!request.items.some(isFlood)) return request
  const refusal = new RelayError('too-large', say('long-text-as-file', { refusal: tooLong }))
  return { ...request, items: request.items.map(item => isFlood(item) ? refusal : item) }
}

function fileOf(item: TextItem): Item {
  const known = files.get(item)
  if (known) return known
  const base64 = Buffer.from(item.text).toString('base64')
  const file: Item = { type: 'file', link: { kind: 'data', base64, mediaType: 'text/plain' }, name: 'message.txt' }
  files.set(item, file)
  return file
}

/** The first lines of a long text, or the start of the first line if it is too long. Leading blanks are left out. */
export function excerptOf(text: string, most = excerptLength): string {
  const start = text.trimStart()
  const head = start.slice(0, Math.min(most, excerptLength)).replace(/[\uD800-\uDBFF]$/, '')
  const isWhole = /^\r?(?:\n|$)/.test(start.slice(head.length, head.length + 2))
  const end = isWhole ? head.length : head.lastIndexOf('\n')
  return head.slice(0, end > 0 ? end : head.length).trimEnd()
}
