import { RelayError } from '../errors'
import { safeName } from '../lib/file-name'
import { isObject } from '../lib/shape'
import { parseLink } from '../message/link'
import type { Item, MediaItem } from '../message/model'
import { parseId, parseMentioned } from '../message/parse'
import { clauses, say } from '../texts/text'
import { readCodes, readSegment, type Segment } from '../message/segments'

/** The most segments of a message. */
const maxSegments = 1000

/** Replaces an emoji of QQ's own, which only QQ can show. */
const face = '[表情]'

/**
 * Reads the parameter `message` (OneBot 11, "message format"): text with CQ codes, a list of segments, or one segment.
 *
 * @param isPlain whether a text is sent as it is, without interpreting CQ codes
 * @throws RelayError `bad-request` if any segment is invalid, or of a kind that the relay does not send
 */
export function parseMessage(message: unknown, isPlain: boolean): Item[] {
  const items: Item[] = []
  let count = 0
  for (const segment of segmentsOf(message, isPlain)) {
    if (++count > maxSegments) throw new RelayError('bad-request', say('too-many-segments', { most: maxSegments }))
    const item = toItem(segment)
    const last = items.at(-1)
    // A blank between two mentions is part of the text around it.
    if (item.type === 'text' && last?.type === 'text') last.text += item.text
    else items.push(item)
  }
  const seen = items.filter(item => item.type !== 'text' || item.text.trim() !== '')
  if (seen.length === 0) throw new RelayError('bad-request', say('message-empty'))
  if (seen.some(isReply) && !seen.some(({ type }) => type === 'text' || type === 'image' || type === 'at')) {
    throw new RelayError('bad-request', say('reply-alone'))
  }
  return seen
}

/**
 * Reads a file to upload.
 *
 * @param name the name for the chat
 * @throws RelayError `bad-request`
 */
export function parseFile(file: unknown, name: unknown): MediaItem {
  return toMedia('file', { type: 'file', data: { file, name } })
}

function* segmentsOf(message: unknown, isPlain: boolean): Generator<Segment> {
  if (typeof message === 'string') {
    if (isPlain) yield { type: 'text', data: { text: message } }
    else yield* readCodes(message)
    return
  }
  if (!Array.isArray(message) && !isObject(message)) throw new RelayError('bad-request', say('message-type'))
  for (const value of [message].flat()) {
    const segment = readSegment(value)
    if (!segment) throw new RelayError('bad-request', say('segment-type'))
    yield segment
  }
}

function toItem(segment: Segment): Item {
  const { type, data } = segment
  switch (type) {
    case 'text':
      if (typeof data.text !== 'string' && typeof data.text !== 'number') throw new RelayError('bad-request', say('text-of-segment'))
      return { type, text: String(data.text).toWellFormed() }
    case 'face':
      return { type: 'text', text: face }
    case 'image':
    case 'video':
    case 'file':
      return toMedia(type, segment)
    case 'record':
      return toMedia('audio', segment)
    case 'at': {
      const userId = parseId(data, 'qq')
      if (userId === undefined) throw new RelayError('bad-request', clauses('at', say('required', { field: 'qq' })))
      return { type, userId: parseMentioned(userId) }
    }
    case 'reply': {
      const messageId = parseId(data, 'id')
      if (messageId === undefined) throw new RelayError('bad-request', clauses('reply', say('required', { field: 'id' })))
      return { type, messageId }
    }
    default:
      throw new RelayError('bad-request', say('unknown-segment'))
  }
}

function toMedia(type: MediaItem['type'], { type: kind, data: { file, name } }: Segment): MediaItem {
  if (typeof file !== 'string' || file === '') throw new RelayError('bad-request', clauses(kind, say('required', { field: 'file' })))
  try {
    return { type, link: parseLink(file, 'file'), ...type === 'file' && typeof name === 'string' && name !== '' && { name: safeName(name) } }
  } catch (error) {
    throw new RelayError('bad-request', clauses(kind, RelayError.from(error).said))
  }
}

function isReply({ type }: Item): boolean {
  return type === 'reply'
}
