import { RelayError } from '../errors'
import { safeName } from '../lib/file-name'
import { say } from '../texts/text'
import type { Link } from './model'

const fileId = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\/(?!\.{1,2}$)[^/\\%#?\p{Cc}]+$/u
const remote = /^(https?:\/\/)([^/\\?#]+)([^?#]*)/i
const data = /^(?:base64:\/\/|data:([^,]*?);base64,)/i
// Blanks and control characters could end a link early or hide its meaning; a lone surrogate has no form in UTF-8.
const unfit = /[\s\p{Cc}\p{Cs}]/u
// URL Standard, "path state": both slashes separate segments, and an encoded dot is a dot.
const dotSegments = /[/\\](?:\.|%2e){1,2}(?=[/\\]|$)/i
const dotSegment = /^[/\\](?:\.|%2e)((?:\.|%2e)?)$/i
// Two dots between separators, anywhere in a link; all may be encoded.
const climbing = /(?:[/\\]|%2f|%5c)(?:\.|%2e){2}(?:[/\\?#]|%2f|%5c|%3f|%23|$)/i

/** The longest link or file ID, in bytes: servers are known to accept that much. */
const maxLength = 8192
/** The longest host and the longest of its parts, in ASCII (RFC 1035, section 2.3.4). */
const maxHost = 253
const maxHostPart = 63

/**
 * Reads a `url` field. Whether a file ID names a file is checked when it is sent.
 *
 * @param field the caller's name of the field
 * @throws RelayError `bad-request` for anything but an http(s) link, base64 data or a file ID, and for a link that is too long
 */
export function parseLink(url: string, field = 'url'): Link {
  const head = data.exec(url)
  if (head) return { kind: 'data', base64: parseBase64(url.slice(head[0].length), field), ...head[1] && { mediaType: head[1] } }
  if (url.length > maxLength || Buffer.byteLength(url) > maxLength) {
    throw new RelayError('bad-request', say('link-too-long', { field, most: maxLength }))
  }
  if (fileId.test(url)) return { kind: 'upload', id: url }
  const parts = remote.exec(url)
  if (parts) return parseRemote(url, parts, field)
  throw new RelayError('bad-request', say('no-link', { field }))
}

/** A link as a caller would write it. */
export function writeLink(link: Link): string {
  if (link.kind === 'remote') return link.url
  if (link.kind === 'upload') return link.id
  return link.mediaType ? `data:${link.mediaType};base64,${link.base64}` : `base64://${link.base64}`
}

/** The file name in a link, as a chat may show it. */
export function nameOfUrl(url: string): string {
  const path = remote.exec(url)?.[3] ?? ''
  const segment = path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1)
  try {
    return safeName(decodeURIComponent(segment))
  } catch {
    // The escapes are not UTF-8.
    return safeName(segment)
  }
}

/**
 * Checks a link by the URL Standard, and normalises only its scheme and dot segments. Some OneBot implementations first try a link as a
 * path: they normalise it, and open the file of that name. So no part of a link may climb out of its host.
 */
function parseRemote(url: string, [, scheme = '', authority = '', path = '']: RegExpExecArray, field: string): Link {
  if (unfit.test(url)) throw new RelayError('bad-request', say('link-blanks', { field }))
  const hostname = readHost(url, authority)
  if (hostname === undefined) throw new RelayError('bad-request', say('no-link', { field }))
  if (hostname.length > maxHost || hostname.split('.').some(part => part.length > maxHostPart)) {
    throw new RelayError('bad-request', say('long-host', { field, most: maxHost, part: maxHostPart }))
  }
  const start = scheme.length + authority.length
  const resolved = scheme.toLowerCase() + authority + resolveDots(path) + url.slice(start + path.length)
  if (hostname.includes('..') || climbing.test(resolved)) {
    throw new RelayError('bad-request', say('link-dots', { field }))
  }
  return { kind: 'remote', url: resolved }
}

/** The host of a link in ASCII; `undefined` if it is malformed. */
function readHost(url: string, authority: string): string | undefined {
  const written = authority.slice(authority.lastIndexOf('@') + 1)
  // A host of this length is too long in any form, and the conversion to ASCII takes quadratic time.
  if (written.length > 3 * maxHost) return written
  return URL.canParse(url) ? new URL(url).hostname : undefined
}

/** Resolves the dot segments of a path as the URL Standard does, and leaves its rest as it is. */
function resolveDots(path: string): string {
  if (!dotSegments.test(path)) return path
  const kept: string[] = []
  const segments = path.split(/(?=[/\\])/)
  for (const segment of segments) {
    const dots = dotSegment.exec(segment)
    if (!dots) kept.push(segment)
    else if (dots[1]) kept.pop()
  }
  // A dot segment at the end names a folder.
  return kept.join('') + (dotSegment.test(segments.at(-1) ?? '') ? '/' : '')
}

function parseBase64(text: string, field: string): string {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  const digits = text.slice(0, text.length - padding)
  const isWhole = padding === 0 ? digits.length % 4 !== 1 : text.length % 4 === 0
  // Searches for a forbidden character: a pattern for the whole text would need a stack as long as the text.
  const isUrlSafe = /[-_]/.test(digits)
  if (!isWhole || digits === '' || (isUrlSafe ? /[^A-Za-z0-9_-]/ : /[^A-Za-z0-9+/]/).test(digits)) {
    throw new RelayError('bad-request', say('malformed-base64', { field }))
  }
  return isUrlSafe ? Buffer.from(digits, 'base64url').toString('base64') : text
}
