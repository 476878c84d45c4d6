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

/** The content type told by the first 16 bytes: pictures, sounds and films that a browser shows without running anything. */
export function sniff(head: Buffer): string | null {
  const text = head.toString('latin1')
  return signatures.find(({ offset, bytes }) => text.startsWith(bytes, offset))?.type ?? null
}
