import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { StoredMedium } from './media'

/** Serves the bytes of a medium, or a range of them. Returns false if the file is gone. */
export async function serveMedium(medium: StoredMedium, request: IncomingMessage, response: ServerResponse): Promise<boolean> {
  const found = await look(medium)
  if (found === null) return false
  const { size, head } = found
  const type = sniff(head)
  response.setHeader('Content-Type', type ?? 'application/octet-stream')
  // Only certain pictures, sounds and films are shown. Anything else is only saved, because anybody may have sent it to the bot.
  response.setHeader('Content-Disposition', `${type === null ? 'attachment' : 'inline'}; filename*=UTF-8''${encodeName(medium.name)}`)
  response.setHeader('Accept-Ranges', 'bytes')
  response.setHeader('Cache-Control', 'private, max-age=3600')
  const range = parseRange(request.headers.range, size)
  if (range === 'unsatisfiable') {
    response.writeHead(416, { 'Content-Range': `bytes */${size}` }).end()
    return true
  }
  const { start, end } = range ?? { start: 0, end: size - 1 }
  response.statusCode = range === null ? 200 : 206
  if (range !== null) response.setHeader('Content-Range', `bytes ${start}-${end}/${size}`)
  response.setHeader('Content-Length', end - start + 1)
  if (request.method === 'HEAD' || size === 0) {
    response.end()
    return true
  }
  // A viewer that disconnects half-way is not an error.
  await pipeline(bytesOf(medium, start, end), response).catch(() => undefined)
  return true
}

async function look({ content }: StoredMedium): Promise<{ size: number, head: Buffer } | null> {
  if (content.kind === 'bytes') return { size: content.bytes.length, head: content.bytes.subarray(0, 16) }
  const file = await open(content.path).catch(() => null)
  if (file === null) return null
  try {
    const head = Buffer.alloc(16)
    const { bytesRead } = await file.read(head, 0, 16, 0)
    return { size: (await file.stat()).size, head: head.subarray(0, bytesRead) }
  } catch {
    return null
  } finally {
    await file.close()
  }
}

function bytesOf({ content }: StoredMedium, start: number, end: number): Readable {
  return content.kind === 'path'
    ? createReadStream(content.path, { start, end })
    : Readable.from([content.bytes.subarray(start, end + 1)])
}

/** A single range of RFC 9110, section 14; null if there is none, or it may be ignored. */
function parseRange(header: string | undefined, size: number): { start: number, end: number } | 'unsatisfiable' | null {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '')
  if (match === null) return null
  const [, from = '', to = ''] = match
  if (from === '' && to === '') return null
  const start = from === '' ? Math.max(0, size - Number(to)) : Number(from)
  const end = from === '' || to === '' ? size - 1 : Math.min(Number(to), size - 1)
  if (from !== '' && to !== '' && Number(to) < start) return null
  return start > end ? 'unsatisfiable' : { start, end }
}

/** RFC 5987, section 3.2.1. Converted to UTF-8 and back first, because half a surrogate pair cannot be encoded. */
function encodeName(name: string): string {
  return encodeURIComponent(Buffer.from(name).toString()).replace(/['()*]/g, char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

const signatures: readonly { type: string, offset: number, bytes: string }[] = [
  { type: 'image/png', offset: 0, bytes: '\x89PNG\r\n' },
  { type: 'image/jpeg', offset: 0, bytes: '\xff\xd8\xff' },
  { type: 'image/gif', offset: 0, bytes: 'GIF8' },
  { type: 'image/bmp', offset: 0, bytes: 'BM' },
  { type: 'image/webp', offset: 8, bytes: 'WEBP' },
  { type: 'audio/wav', offset: 8, bytes: 'WAVE' },
  { type: 'video/mp4', offset: 4, bytes: 'ftyp' },
  { type: 'video/webm', offset: 0, bytes: '\x1a\x45\xdf\xa3' },
  { type: 'audio/ogg', offset: 0, bytes: 'OggS' },
  { type: 'audio/mpeg', offset: 0, bytes: 'ID3' },
  { type: 'audio/amr', offset: 0, bytes: '#!AMR' },
]

/** The content type according to the first 16 bytes: pictures, sounds and films that a browser shows without running anything. */
export function sniff(head: Buffer): string | null {
  const text = head.toString('latin1')
  return signatures.find(({ offset, bytes }) => text.startsWith(bytes, offset))?.type ?? null
}
