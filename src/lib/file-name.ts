/** The longest name, in bytes of UTF-8. */
const maxBytes = 120
/** A longer name is cut to this many characters at each end before it is cleaned: some steps take milliseconds per thousand characters. */
const keptEnds = 2048

// By their Unicode category: Cc control, Cf format (bidi marks and overrides, zero-width characters, byte order marks), Cs lone
// surrogates, Zl and Zp line ends. The other characters end a path, the path of a URL or a drive, or are forbidden on Windows.
const unsafe = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}%#?<>:"|*]/gu
// Windows drops blanks and dots at the end, and a leading dot hides a file. Without the look-behind, a long run of dots within a name would
// take quadratic time.
const edges = /^[.\s]+|(?<![.\s])[.\s]+$/gu
// Devices on Windows, in any folder and with any extension. Windows takes superscript digits for digits here.
const reserved = /^(?:con|prn|aux|nul|conin\$|conout\$|clock\$|(?:com|lpt)[0-9¹²³])\s*(?:\.|$)/iu

/**
 * Reduces a foreign file name to a base name that is safe in a path, in a URL and in a chat; `file` if nothing is left. The result never
 * begins with a dot, as the temporary files of uploads do, and a second call changes nothing.
 */
export function safeName(name: string): string {
  const base = name.slice(Math.max(name.lastIndexOf('/'), name.lastIndexOf('\\')) + 1)
  const ends = base.length > 2 * keptEnds ? base.slice(0, keptEnds) + base.slice(-keptEnds) : base
  const cut = shorten(ends.replace(unsafe, '').normalize('NFC').replace(edges, ''))
  if (cut === '') return 'file'
  return reserved.test(cut) ? shorten(`_${cut}`) : cut
}

function shorten(name: string): string {
  if (Buffer.byteLength(name) <= maxBytes) return name
  // One or two extensions (`.tar.gz`), at most 98 bytes. A longer one is cut like the rest of the name.
  const [extension = ''] = /(?:\.[^.\s]{1,12}){1,2}$/u.exec(name) ?? []
  const stem = name.slice(0, name.length - extension.length)
  const { read } = new TextEncoder().encodeInto(stem, new Uint8Array(maxBytes - Buffer.byteLength(extension)))
  return stem.slice(0, read).replace(edges, '') + extension
}
