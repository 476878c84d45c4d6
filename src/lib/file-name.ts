/** Longest name, in bytes of UTF-8. */
const maxBytes = 120
/** Longest extension that an overlong name keeps when it is cut, in bytes of UTF-8. What is longer counts as part of the name. */
const maxExtensionBytes = 64

/** How much of a longer name is looked at, at each end, in characters: some of the steps take milliseconds for each thousand. */
const looked = 2048

// By their Unicode category: Cc control, Cf format (bidi marks and overrides, zero-width characters, byte order marks), Cs lone
// surrogates, Zl and Zp line ends. The others end a path, the path of a URL or a drive, or are forbidden on Windows.
const unsafe = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}%#?<>:"|*]/gu
const edge = /[.\s]/u
// Names of devices on Windows, in any folder and whatever extension follows. Windows takes superscript digits for digits here.
const reserved = /^(?:con|prn|aux|nul|conin\$|conout\$|clock\$|(?:com|lpt)[0-9¹²³])\s*(?:\.|$)/iu
const extension = /\.[^.\s]+$/u
const graphemes = new Intl.Segmenter()
const utf8 = new TextEncoder()

/**
 * Reduces a file name from outside to a base name that is safe in a path, in a URL and in a chat: `file` when nothing is left. It
 * never begins with a dot, as the temporary files of uploads do. Applied twice, it changes nothing more.
 */
export function safeName(name: string): string {
  const base = name.slice(Math.max(name.lastIndexOf('/'), name.lastIndexOf('\\')) + 1)
  const ends = base.length > 2 * looked ? base.slice(0, looked) + base.slice(-looked) : base
  const cut = shorten(trimEdges(ends.replace(unsafe, '').normalize('NFC')))
  if (cut === '') return 'file'
  return reserved.test(cut) ? shorten(`_${cut}`) : cut
}

/** Without blanks and dots at either end: Windows drops those at the end, and a leading dot hides a file. */
function trimEdges(text: string): string {
  // Not a regular expression: one anchored at the end takes quadratic time on a long run of dots.
  let start = 0
  let end = text.length
  while (start < end && edge.test(text.charAt(start))) start++
  while (end > start && edge.test(text.charAt(end - 1))) end--
  return text.slice(start, end)
}

function shorten(name: string): string {
  if (Buffer.byteLength(name) <= maxBytes) return name
  const suffix = suffixOf(name)
  const stem = trimEdges(take(name.slice(0, name.length - suffix.length), maxBytes - Buffer.byteLength(suffix)))
  return (stem || 'file') + suffix
}

/** The extension with its dot, two of them (`.tar.gz`) where they are short enough, or nothing. */
function suffixOf(name: string): string {
  const last = extensionOf(name)
  const both = extensionOf(name.slice(0, name.length - last.length)) + last
  return [both, last].find(suffix => Buffer.byteLength(suffix) <= maxExtensionBytes) ?? ''
}

function extensionOf(name: string): string {
  return extension.exec(name)?.[0] ?? ''
}

/** The longest beginning of `text` that fits `bytes`, cut between what a reader sees as characters. */
function take(text: string, bytes: number): string {
  const { read } = utf8.encodeInto(text, new Uint8Array(bytes))
  // Only at the end: to go through all of it takes a hundred times as long, and a request may have a thousand names.
  return text.slice(0, graphemes.segment(text).containing(read)?.index ?? read)
}
