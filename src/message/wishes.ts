import { demand } from '../errors'
import { threadModes, type SendAt, type ThreadMode, type Wishes } from './model'

/** The fields of a request that say when and how its message leaves. */
export const wishFields = ['urgent', 'send_at', 'thread', 'thread_mode'] as const

/** How far ahead a message may be ordered, in milliseconds. */
const longestAhead = 30 * 24 * 60 * 60 * 1000
const longestThread = 200

/**
 * Reads when and how a message is to leave. Null and an empty text count as absent.
 *
 * @param isText whether the fields come from a form or a query, where everything is text
 * @throws RelayError `bad-request`, which names the field
 */
export function parseWishes(fields: Readonly<Record<string, unknown>>, isText = false): Wishes {
  const [urgent, at, thread, mode] = wishFields.map(name => fields[name] === '' ? undefined : fields[name] ?? undefined)
  return {
    ...urgent !== undefined && { urgent: readUrgent(urgent, isText) },
    ...at !== undefined && { sendAt: readSendAt(at) },
    ...thread !== undefined && { thread: readThread(thread) },
    ...mode !== undefined && { threadMode: readMode(mode) },
  }
}

function readUrgent(value: unknown, isText: boolean): boolean {
  if (typeof value === 'boolean') return value
  const found = isText ? ['0', 'false', '1', 'true'].indexOf(String(value)) : -1
  demand(found >= 0, isText ? 'urgent must be 1, true, 0 or false' : 'urgent must be true or false')
  return found > 1
}

/** A date-time with an offset (RFC 3339), or seconds from now. A plus sign in a query stands for a blank. */
function readSendAt(value: unknown): SendAt {
  const written = typeof value === 'number' || typeof value === 'string' ? String(value).trim() : ''
  const isSeconds = /^\d+(\.\d+)?$/.test(written)
  const isDate = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[- +]\d\d:\d\d)$/.test(written)
  const now = Date.now()
  const at = isSeconds ? now + Number(written) * 1000 : isDate && hasDay(written.slice(0, 10)) ? Date.parse(written.replace(' ', written[10] === ' ' ? 'T' : '+').replace(' ', '+')) : NaN
  demand(!Number.isNaN(at), 'send_at must be a date-time with an offset, such as 2026-11-20T18:00:00+08:00, or a number of seconds from now')
  demand(at <= now + longestAhead, 'send_at must be at most 30 days ahead')
  return { at: Math.round(at), written }
}

/** Whether there is such a day: of 30 February, `Date` makes 2 March. */
function hasDay(date: string): boolean {
  const time = Date.parse(date)
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(date)
}

function readThread(name: unknown): string {
  demand(typeof name === 'string' && name.trim() !== '' && Array.from(name).length <= longestThread, `thread must be text of 1 to ${longestThread} characters`)
  return name.toWellFormed()
}

function readMode(value: unknown): ThreadMode {
  const mode = threadModes.find(each => each === value)
  demand(mode !== undefined, 'thread_mode must be reply, update or replace')
  return mode
}
