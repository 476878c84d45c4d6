import { RelayError } from '../errors'
import { safeName } from '../lib/file-name'
import type { Link } from './model'

const fileId = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\/[^/\\]+$/
const remote = /^(https?:\/\/)([^/\\?#]+)([^?#]*)/i
// Blanks and control characters would end a link early, or hide what it is; half of a surrogate pair has no form in UTF-8.
const unfit = /[\s\p{Cc}\p{Cs}]/u
// Both kinds of slash separate the segments of a path, and an encoded dot is a dot (URL Standard, "path state").
const dotSegment = /[/\\](?:\.|%2e){1,2}(?:[/\\]|$)/i
// The same anywhere in a link with slashes encoded as well, and ended by a query or fragment as well.
const climbing = /(?:[/\\]|%2f|%5c)(?:\.|%2e){2}(?:[/\\?#]|%2f|%5c|%3f|%23|$)/i
const data = /^(?:base64:\/\/|data:([^,]*?);base64,)/i

/** The longest link or file ID, in bytes: what servers are known to take. */
const maxLength = 8192
/** The longest host and the longest part of one, as in the DNS (RFC 1035, section 2.3.4), but for a part in characters. */
const maxHost = 253
const maxHostPart = 63

const expected = 'url must be an http(s) link, base64 data or a file ID returned by /upload'

/**
 * Reads a `url` field. Whether a file ID still names a file is found out when it is sent.
 *
 * @throws RelayError `bad-request` for anything that is not an http(s) link, base64 data or a file ID, and for a link that is too long
 */
export function parseLink(url: string): Link {
  const head = data.exec(url)
  if (head) return { kind: 'data', base64: parseBase64(url.slice(head[0].length)), ...head[1] && { mediaType: head[1] } }
  if (url.length > maxLength || Buffer.byteLength(url) > maxLength) {
    throw new RelayError('bad-request', `url must have at most ${maxLength} bytes, unless it is base64 data`)
  }
  if (fileId.test(url)) return parseFileId(url)
  const parts = remote.exec(url)
  if (parts) return parseRemote(url, parts)
  throw new RelayError('bad-request', expected)
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

/** What a file behind a link is called. */
export function nameOfUrl(url: string): string {
  const path = /^https?:\/\/[^/\\?#]*([^?#]*)/.exec(url)?.[1] ?? ''
  // A link may have megabytes, a name has not: the end of the path is enough to find it.
  const end = path.slice(-4096)
  const segment = end.slice(Math.max(end.lastIndexOf('/'), end.lastIndexOf('\\')) + 1)
  try {
    return safeName(decodeURIComponent(segment))
  } catch {
    // Not UTF-8 behind its percent signs.
    return safeName(segment)
  }
}

/**
 * OneBot implementations are known to take a link for a path first: they normalise it, and open the file that this leads to. So
 * nothing in a link may lead out of the folder that its host would be.
 */
function parseRemote(url: string, [, scheme = '', authority = '', path = '']: RegExpExecArray): Link {
  if (unfit.test(url)) throw new RelayError('bad-request', expected)
  // Neither a user name nor what follows the host can make a link invalid (URL Standard, "authority state" and "path state").
  const host = readHost(authority.slice(authority.lastIndexOf('@') + 1))
  const start = scheme.length + authority.length
  const resolved = scheme.toLowerCase() + authority + resolveDots(path) + url.slice(start + path.length)
  if (host.includes('..') || climbing.test(resolved)) {
    throw new RelayError('bad-request', 'url must not hold ".." in its host, in its query or fragment, or beside an encoded slash')
  }
  return { kind: 'remote', url: resolved }
}

/**
 * Gives a host in ASCII. How long it is, is found out before: to put it into ASCII takes time that grows with the square of its parts.
 *
 * @param written as in a link, with its port
 */
function readHost(written: string): string {
  let host: string
  try {
    // Some characters stand for up to 18 others. The URL Standard replaces them as well ("domain to ASCII").
    host = decodeURIComponent(written.replace(/:\d*$/, '')).normalize('NFKC')
  } catch {
    throw new RelayError('bad-request', expected)
  }
  if (Buffer.byteLength(host) > maxHost || host.split(/[.\u3002]/).some(part => part.length > maxHostPart)) {
    throw new RelayError('bad-request', `the host of url must have at most ${maxHost} bytes, and ${maxHostPart} characters between its dots`)
  }
  try {
    return new URL(`http://${written}`).hostname
  } catch {
    throw new RelayError('bad-request', expected)
  }
}

/** Resolves the dot segments of a path as the URL Standard does, and leaves the rest of it as it is. */
function resolveDots(path: string): string {
  if (!dotSegment.test(path)) return path
  // In place and unit by unit: a batch may have millions of segments.
  const bytes = Buffer.allocUnsafeSlow(path.length * 2)
  bytes.write(path, 'utf16le')
  const units = new Uint16Array(bytes.buffer)
  let length = 0
  for (let start = 0; start < units.length;) {
    let end = start + 1
    while (end < units.length && !isSlash(units[end])) end++
    const dots = countDots(units, start + 1, end)
    if (dots === 0) for (let at = start; at < end; at++) units[length++] = units[at] ?? 0
    if (dots === 2) while (length > 0 && !isSlash(units[--length]));
    // What ends with a dot segment names a folder.
    if (dots > 0 && end === units.length) units[length++] = slash
    start = end
  }
  return bytes.toString('utf16le', 0, length * 2)
}

const slash = 0x2f
const backslash = 0x5c

function isSlash(unit: number | undefined): boolean {
  return unit === slash || unit === backslash
}

/** How many dots a segment consists of, 1 or 2; 0 when it is no dot segment. */
function countDots(units: Uint16Array, start: number, end: number): number {
  let dots = 0
  for (let at = start; at < end; dots++) {
    if (units[at] === 0x2e) at++
    else if (units[at] === 0x25 && units[at + 1] === 0x32 && (units[at + 2] === 0x65 || units[at + 2] === 0x45)) at += 3
    else return 0
    if (dots === 2) return 0
  }
  return dots
}

function parseFileId(id: string): Link {
  // No stored name holds these, so such an ID was made by hand. Refused here, it never meets the file system.
  if (/[%#?\p{Cc}]/u.test(id) || id.endsWith('/.') || id.endsWith('/..')) {
    throw new RelayError('bad-request', 'url is not a file ID returned by /upload')
  }
  return { kind: 'upload', id }
}

function parseBase64(text: string): string {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  const digits = text.slice(0, text.length - padding)
  const isWhole = padding === 0 ? digits.length % 4 !== 1 : text.length % 4 === 0
  // One search each for what must not be there: a pattern for all of it would take a stack as long as the text.
  const isUrlSafe = /[-_]/.test(digits)
  if (!isWhole || digits === '' || (isUrlSafe ? /[^A-Za-z0-9_-]/ : /[^A-Za-z0-9+/]/).test(digits)) {
    throw new RelayError('bad-request', 'url holds no valid base64')
  }
  return isUrlSafe ? toStandardAlphabet(text) : text
}

/** Byte by byte: replacing millions of single characters takes seconds. */
function toStandardAlphabet(base64url: string): string {
  const bytes = Buffer.from(base64url, 'latin1')
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === 0x2d) bytes[at] = 0x2b // - to +
    else if (bytes[at] === 0x5f) bytes[at] = 0x2f // _ to /
  }
  return bytes.toString('latin1')
}
