import { RelayError } from '../errors'
import type { Link } from './model'

const fileId = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\/[^/\\]+$/
// Only what a link may hold: blanks or control characters would end it early, or hide what it is.
const remote = /^https?:\/\/(?=[^/\\?#])[^\s\p{Cc}]+$/iu
const dataUrl = /^data:([^,]*?);base64,/i
const base64Text = /^(?:[A-Za-z0-9+/]+={0,2}|[A-Za-z0-9_-]+={0,2})$/

/**
 * Reads a `url` field. Whether a file ID still names a file is found out when it is sent.
 *
 * @throws RelayError `bad-request` for anything that is not an http(s) link, base64 data or a file ID
 */
export function parseLink(url: string): Link {
  if (fileId.test(url)) return parseFileId(url)
  if (remote.test(url) && URL.canParse(url)) return { kind: 'remote', url }
  if (/^base64:\/\//i.test(url)) return { kind: 'data', base64: parseBase64(url.slice('base64://'.length)) }
  const data = dataUrl.exec(url)
  if (data) {
    const mediaType = data[1] ?? ''
    return { kind: 'data', base64: parseBase64(url.slice(data[0].length)), ...mediaType && { mediaType } }
  }
  throw new RelayError('bad-request', 'url must be an http(s) link, base64 data or a file ID returned by /upload')
}

/** A link as a caller would write it. */
export function writeLink(link: Link): string {
  switch (link.kind) {
    case 'remote':
      return link.url
    case 'upload':
      return link.id
    case 'data':
      return link.mediaType ? `data:${link.mediaType};base64,${link.base64}` : `base64://${link.base64}`
  }
}

function parseFileId(id: string): Link {
  // No stored name holds these, so such an ID was made by hand. Refused here, it never meets the file system.
  if (/[%#?\p{Cc}]/u.test(id) || id.endsWith('/.') || id.endsWith('/..')) {
    throw new RelayError('bad-request', 'url is not a file ID returned by /upload')
  }
  return { kind: 'upload', id }
}

function parseBase64(text: string): string {
  const digits = text.replace(/=+$/, '').length
  const isWhole = digits === text.length ? digits % 4 !== 1 : text.length % 4 === 0
  if (!isWhole || !base64Text.test(text)) throw new RelayError('bad-request', 'url holds no valid base64')
  return text.replace(/-/g, '+').replace(/_/g, '/')
}
