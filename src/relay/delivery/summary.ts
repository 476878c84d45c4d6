import { RelayError } from '../../errors'
import { isString, isTime, isWhole, listOf, nullable, objectOf, oneOf, optional } from '../../lib/shape'
import { nameOfUrl } from '../../message/link'
import type { Item, MediaItem, ParsedItem } from '../../message/model'
import type { SendFailure } from '../../platform/port'
import type { Clock } from '../clock'
import { isText, say, type Text } from '../../texts/text'

/** How much content the records keep: an excerpt, all of it, or only the kinds of items. */
export type RecordContent = 'preview' | 'full' | 'none'

/** The part of a record that is only for display: nothing else depends on it. */
export interface Summary {
  /** The items in short. */
  readonly items: readonly ItemSummary[]
  /** The last calls to the platform, the oldest first. */
  calls: readonly Call[]
  /** The wait for its first turn, in milliseconds; `null` before that. */
  waited: number | null
  /** The time of all calls to the platform together, in milliseconds. */
  platformTime: number
}

/** What an item is, in short. */
export interface ItemSummary {
  /** `invalid` for a malformed item of a batch. */
  readonly type: Item['type'] | 'invalid'
  /** The start of its text. */
  readonly msg?: string
  /** The name of a file. */
  readonly name?: string
  /** In bytes; for a text only if `msg` is an excerpt. */
  size?: number
}

/** The outcome of a call to the platform. */
export type CallOutcome = 'sent' | SendFailure

/** One call to the platform. */
export interface Call {
  /** Its time by the machine's clock. */
  readonly at: number
  /** The time until its answer, in milliseconds. */
  took: number
  /** `unanswered` until there is an answer. */
  outcome: CallOutcome
  /** The cause, and the platform's own words. */
  reason?: Text
}

/** Called when a call has ended, and again if its answer comes late. */
export type EndCall = (outcome: CallOutcome, reason?: Text) => void

/** The most characters of a delivery's texts. */
const maxText = 200
/** The most calls in a record. */
const maxCalls = 20

/** @param content `none` keeps only kinds and sizes */
export function summarize(items: readonly ParsedItem[], content: RecordContent): Summary {
  return { items: content === 'none' ? items.map(sizeUp) : shorten(items), calls: [], waited: null, platformTime: 0 }
}

/**
 * Notes the start of a call.
 *
 * @param onEnd called once, with the outcome and the milliseconds; not for a late answer
 */
export function noteCall(summary: Summary, clock: Clock, onEnd: (outcome: CallOutcome, time: number) => void): EndCall {
  const call: Call = { at: clock.wall(), took: 0, outcome: 'unanswered' }
  // `slice` returns a list without room to grow; one with a new entry reserves memory for 17. There are thousands of records.
  summary.calls = [...summary.calls, call].slice(-maxCalls)
  const start = clock.now()
  let hasEnded = false
  return (outcome, reason) => {
    const took = clock.now() - start
    if (!hasEnded) onEnd(outcome, took)
    hasEnded = true
    // Whole numbers, because fractions make records much longer.
    summary.platformTime += Math.round(took) - call.took
    call.took = Math.round(took)
    call.outcome = outcome
    if (reason === undefined) delete call.reason
    else call.reason = reason
  }
}

/** Notes a call whose answer was lost with the process that made it. @param at its time by the machine's clock */
export function noteCut(summary: Summary, at: number): void {
  summary.calls = [...summary.calls, { at, took: 0, outcome: 'unanswered' as const, reason: say('ended-before-answer') }].slice(-maxCalls)
}

/** The searchable text of a record. */
export function wordsOf({ items }: Summary): string {
  return items.map(({ msg = '' }) => msg).join('\n')
}

/** Checks a summary read from JSON. */
export const isSummary = objectOf<Summary>({
  items: listOf(objectOf<ItemSummary>({
    type: oneOf(['text', 'image', 'file', 'video', 'audio', 'at', 'reply', 'invalid']),
    msg: optional(isString), name: optional(isString), size: optional(isWhole),
  })),
  calls: listOf(objectOf<Call>({
    at: isTime, took: isTime, outcome: oneOf(['sent', 'refused', 'suppressed', 'unsent', 'unanswered']), reason: optional(isText),
  })),
  waited: nullable(isTime),
  platformTime: isTime,
})

/** The limit is for the texts of all items together, so that a long batch takes no more room than one message. */
function shorten(items: readonly ParsedItem[]): ItemSummary[] {
  let left = maxText
  return items.map(item => {
    if (item instanceof RelayError) return { type: 'invalid' }
    if (item.type !== 'text') return 'link' in item ? nameFile(item) : { type: item.type }
    const msg = cut(item.text, left)
    left -= msg.length
    return msg === item.text ? { type: item.type, msg } : { type: item.type, msg, size: Buffer.byteLength(item.text) }
  })
}

/** The size of an uploaded file becomes known when it is sent. */
function sizeUp(item: ParsedItem): ItemSummary {
  if (item instanceof RelayError) return { type: 'invalid' }
  if (item.type === 'text') return { type: item.type, size: Buffer.byteLength(item.text) }
  return 'link' in item && item.link.kind === 'data'
    ? { type: item.type, size: Buffer.byteLength(item.link.base64, 'base64') }
    : { type: item.type }
}

/** Inline media have no name by default. */
function nameFile(item: MediaItem): ItemSummary {
  const { link } = item
  const own = link.kind === 'remote' ? nameOfUrl(link.url) : link.kind === 'upload' ? link.id.slice(link.id.indexOf('/') + 1) : undefined
  const { name = own } = item
  return { ...sizeUp(item), ...name !== undefined && { name } }
}

/** Cuts a text without splitting a surrogate pair. */
function cut(text: string, length: number): string {
  if (text.length <= length) return text
  // A plain slice would keep the whole text in memory as long as the record.
  return Buffer.from(text.slice(0, length).replace(/[\uD800-\uDBFF]$/, ''), 'utf16le').toString('utf16le')
}
