import { RelayError } from '../errors'
import { isNumber, isString, listOf, nullable, objectOf, oneOf, optional } from '../lib/shape'
import { nameOfUrl } from '../message/link'
import type { Item, MediaItem, ParsedItem } from '../message/model'
import type { SendFailure } from '../platform/port'
import type { Clock } from './clock'

/** How much the records keep of what was to be sent: how it begins, all of it, or only of which kinds it was. */
export type RecordContent = 'preview' | 'full' | 'none'

/** What the record of a delivery tells besides how far it is. Nothing depends on it but what people are shown. */
export interface Summary {
  /** What was to be sent, item by item. */
  readonly items: readonly ItemSummary[]
  /** The calls to the platform that were made last, the oldest first. */
  calls: readonly Call[]
  /** How long it waited for its first turn, in milliseconds; `null` until that has come. */
  waited: number | null
  /** How long all calls to the platform took together, in milliseconds. */
  platformTime: number
}

/** What an item is, in short. */
export interface ItemSummary {
  /** `invalid` for an item of a batch that was none. */
  readonly type: Item['type'] | 'invalid'
  /** How its text begins. */
  readonly msg?: string
  /** What a file is called. */
  readonly name?: string
  /** In bytes; of a text only where `msg` is not all of it. */
  size?: number
}

/** How a call to the platform ended. */
export type CallOutcome = 'sent' | SendFailure

/** One call to the platform. */
export interface Call {
  /** When it was made, by the relay's clock. */
  readonly at: number
  /** How long its answer took, in milliseconds. */
  took: number
  /** `unanswered` as long as there is no answer. */
  outcome: CallOutcome
  /** In the platform's own words. */
  reason?: string
}

/** Told how a call has ended; told again where its answer comes late. */
export type EndCall = (outcome: CallOutcome, reason?: string) => void

/** How many characters of text are kept of a delivery, and how many of the reason of a call. */
const maxText = 200
const maxReason = 300
/** How many calls are kept. */
const maxCalls = 20

/** @param content `none` leaves everything out but kinds and sizes */
export function summarize(items: readonly ParsedItem[], content: RecordContent): Summary {
  return { items: content === 'none' ? items.map(sizeUp) : shorten(items), calls: [], waited: null, platformTime: 0 }
}

/**
 * Notes a call that is made now.
 *
 * @param onEnd told once how it has ended, after so many milliseconds; not of an answer that comes late
 */
export function noteCall(summary: Summary, clock: Clock, onEnd: (outcome: CallOutcome, time: number) => void): EndCall {
  const call: Call = { at: clock.wall(), took: 0, outcome: 'unanswered' }
  // A list that grows by itself takes room for more, and thousands of records are in memory.
  summary.calls = [...summary.calls.slice(1 - maxCalls), call]
  const start = clock.now()
  let hasEnded = false
  return (outcome, reason) => {
    const took = clock.now() - start
    if (!hasEnded) onEnd(outcome, took)
    hasEnded = true
    // Whole numbers: the fractions would be the longest part of many a record.
    summary.platformTime += Math.round(took) - call.took
    call.took = Math.round(took)
    call.outcome = outcome
    if (reason === undefined) delete call.reason
    else call.reason = cut(reason, maxReason)
  }
}

/** The text by which a record is found. */
export function wordsOf({ items }: Summary): string {
  return items.map(({ msg = '' }) => msg).join('\n')
}

/** Tells a summary that was read from JSON. */
export const isSummary = objectOf<Summary>({
  items: listOf(objectOf<ItemSummary>({
    type: oneOf(['text', 'image', 'file', 'video', 'audio', 'at', 'reply', 'invalid']),
    msg: optional(isString), name: optional(isString), size: optional(isNumber),
  })),
  calls: listOf(objectOf<Call>({
    at: isNumber, took: isNumber, outcome: oneOf(['sent', 'refused', 'suppressed', 'unsent', 'unanswered']), reason: optional(isString),
  })),
  waited: nullable(isNumber),
  platformTime: isNumber,
})

/** The text is that of all items together, so that a long batch is no longer than one message. */
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

/** The size of an uploaded file is not known before it is sent. */
function sizeUp(item: ParsedItem): ItemSummary {
  if (item instanceof RelayError) return { type: 'invalid' }
  if (item.type === 'text') return { type: item.type, size: Buffer.byteLength(item.text) }
  return 'link' in item && item.link.kind === 'data'
    ? { type: item.type, size: Buffer.byteLength(item.link.base64, 'base64') }
    : { type: item.type }
}

/** What came along as data has no name unless it was given one. */
function nameFile(item: MediaItem): ItemSummary {
  const { link } = item
  const own = link.kind === 'remote' ? nameOfUrl(link.url) : link.kind === 'upload' ? link.id.slice(link.id.indexOf('/') + 1) : undefined
  const { name = own } = item
  return { ...sizeUp(item), ...name !== undefined && { name } }
}

/** Cuts a text, but not between the halves of a surrogate pair. */
function cut(text: string, length: number): string {
  if (text.length <= length) return text
  // A slice would keep all of the text in memory, for as long as the record is.
  return Buffer.from(text.slice(0, length).replace(/[\uD800-\uDBFF]$/, ''), 'utf16le').toString('utf16le')
}
