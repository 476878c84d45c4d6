import { badParameter, platformFailure } from './answers'
import { decodeCq } from './cqcode'
import { isRecord, parseFlag, parseId, parseInteger, parseText } from './parse'
import type { Profile } from './profiles'
import type { Segment } from './types'

/** Segments that carry bytes. */
export type MediaSegment = Segment & { type: 'image' | 'video' | 'record' | 'file' }

/** Whether a segment carries bytes. */
export function isMedia(segment: Segment): segment is MediaSegment {
  return segment.type === 'image' || segment.type === 'video' || segment.type === 'record' || segment.type === 'file'
}

// Segments that are messages of their own. Of a message with other segments, only such a segment arrives.
const standalone = new Set(['video', 'record', 'file', 'json', 'xml', 'music', 'forward', 'share', 'location', 'contact', 'poke'])

const withoutRules = new Set([
  'dice', 'rps', 'shake', 'anonymous', 'xml', 'music', 'forward', 'share', 'location', 'contact', 'poke', 'mface', 'markdown',
])

/**
 * The segments of a send action that arrive: validated, and without those that a standalone segment displaces.
 * @throws ActionFailure with the profile's refusal
 */
export function parseMessage(profile: Profile, message: unknown, autoEscape: unknown): Segment[] {
  const segments = readSegments(profile, message, autoEscape)
  segments.forEach((segment, index) => {
    checkSegment(profile, segment, index)
  })
  const arriving = segments.filter(segment => segment.type !== 'text' || segment.data.text !== '')
  if (!arriving.some(segment => segment.type !== 'reply')) throw platformFailure(profile, 'empty')
  if (arriving.length === 1) return arriving
  const alone = arriving.find(segment => standalone.has(segment.type))
  return alone === undefined ? arriving : [alone]
}

function readSegments(profile: Profile, message: unknown, autoEscape: unknown): Segment[] {
  if (typeof message === 'string') {
    return parseFlag(autoEscape) ? [{ type: 'text', data: { text: message } }] : decodeCq(message)
  }
  const list: unknown[] | null = Array.isArray(message) ? message : isRecord(message) ? [message] : null
  if (list === null) throw badParameter(profile, 'message must be an array of segments or a string')
  return list.map(item => {
    if (!isRecord(item) || typeof item.type !== 'string' || !isRecord(item.data)) {
      throw badParameter(profile, 'a segment must have a type and data')
    }
    return { type: item.type, data: item.data }
  })
}

function checkSegment(profile: Profile, { type, data }: Segment, index: number): void {
  const problem = findProblem(type, data, index)
  if (problem !== null) throw badParameter(profile, `message/${index}: ${problem}`)
}

function findProblem(type: string, data: Record<string, unknown>, index: number): string | null {
  switch (type) {
    case 'text':
      return typeof data.text === 'string' ? null : 'text must be a string'
    case 'at':
      return data.qq === 'all' || parseId(data.qq) !== null ? null : 'qq must be an account or "all"'
    case 'face':
      return parseInteger(data.id) === null ? 'id must be a number' : null
    case 'reply':
      if (index > 0) return 'a reply must be the first segment'
      return parseInteger(data.id) === null ? 'id must be a message id' : null
    case 'image':
    case 'video':
    case 'record':
    case 'file':
      return parseText(data.file) === null ? 'file must be given' : null
    case 'json':
      return parseText(data.data) === null ? 'data must be given' : null
    default:
      return withoutRules.has(type) ? null : `unknown segment type ${type}`
  }
}

/** The text of a message: its text segments, joined. */
export function textOf(segments: readonly Segment[]): string {
  const [only] = segments
  if (segments.length === 1 && only?.type === 'text') return typeof only.data.text === 'string' ? only.data.text : ''
  return segments.map(({ type, data }) => (type === 'text' && typeof data.text === 'string' ? data.text : '')).join('')
}
