/** The longest name, in bytes of UTF-8. */
const maxBytes = 120
/** The longest extension that an overlong name keeps, in bytes of UTF-8. A longer one is cut like the rest of the name. */
const maxExtensionBytes = 64
/** How much of each end of a longer name is kept before it is cleaned, in characters: some steps take milliseconds for each thousand. */
const keptEnds = 2048

// By their Unicode category: Cc control, Cf format (bidi marks and overrides, zero-width characters, byte order marks), Cs lone
// surrogates, Zl and Zp line ends. The others end a path, the path of a URL or a drive, or are forbidden on Windows.
const unsafe = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}%#?<>:"|*]/gu
const edge = /[.\s]/u
// Devices on Windows, in any folder and with any extension. Windows takes superscript digits for digits here.
const reserved = /^(?:con|prn|aux|nul|conin\$|conout\$|clock\$|(?:com|lpt)[0-9¹²³])\s*(?:\.|$)/iu
const graphemes = new Intl.Segmenter()

/**
 * Reduces a foreign file name to a base name that is safe in a path, in a URL and in a chat; `file` when nothing is left. The result never
 * begins with a dot, as the temporary files of uploads do, and is safe by itself: a second call changes nothing.
 */
export function safeName(name: string): string {
  const base = name.slice(Math.max(name.lastIndexOf('/'), name.lastIndexOf('\\')) + 1)
  const ends = base.length > 2 * keptEnds ? base.slice(0, keptEnds) + base.slice(-keptEnds) : base
  const cut = shorten(trimEdges(ends.replace(unsafe, '').normalize('NFC')))
  if (cut === '') return 'file'
  return reserved.test(cut) ? shorten(`_${cut}`) : cut
}

/** Removes blanks and dots at either end: Windows drops those at the end, and a leading dot hides a file. */
function trimEdges(text: string): string {
  // A regular expression with an anchor at the end takes quadratic time on a long run of dots.
  let start = 0
  let end = text.length
  while (start < end && edge.test(text.charAt(start))) start++
  while (end > start && edge.test(text.charAt(end - 1))) end--
  return text.slice(start, end)
}

function shorten(name: string): string {
  if (Buffer.byteLength(name) <= maxBytes) return name
  // Two extensions (`.tar.gz`) where both are short enough.
  const extensions = [/\.[^.\s]+\.[^.\s]+$/u, /\.[^.\s]+$/u].map(pattern => pattern.exec(name)?.[0] ?? '')
  const extension = extensions.find(each => each !== '' && Buffer.byteLength(each) <= maxExtensionBytes) ?? ''
  const stem = trimEdges(take(name.slice(0, name.length - extension.length), maxBytes - Buffer.byteLength(extension)))
  return (stem || 'file') + extension
}

/** The longest beginning of a text that fits into so many bytes, cut between what a reader sees as characters. */
function take(text: string, bytes: number): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(bytes))
  // Segments the end only: all of it takes a hundred times as long, and a request may have a thousand names.
  return text.slice(0, graphemes.segment(text).containing(read)?.index ?? read)
}
