/** Parses JSON; `undefined` for malformed text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The most levels of nested arrays and objects. */
const maxLevels = 64
/** The most values, including arrays and objects, but not the names of fields. */
const maxValues = 20_000

const [space = 0, quote = 0, backslash, comma, openArray, closeArray, openObject, closeObject] = Buffer.from(' "\\,[]{}')

/**
 * Checks the bounds of a JSON text (RFC 8259) before it is parsed: a few megabytes can hold millions of values, and each of them takes a
 * hundred bytes of memory or more.
 *
 * @param bytes JSON in UTF-8; malformed JSON is checked at least up to the place where a parser would fail
 * @param most the most values
 * @returns the excess in words, such as `more than 64 levels`; `undefined` within the bounds
 */
export function excessOfJson(bytes: Buffer, most = maxValues): string | undefined {
  let levels = 0
  // Counts the outermost value, the first value of each non-empty container, and the value after each comma.
  let values = 1
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === quote) {
      for (at++; at < bytes.length && bytes[at] !== quote; at++) if (bytes[at] === backslash) at++
    } else if (byte === openArray || byte === openObject) {
      if (++levels > maxLevels) return `more than ${maxLevels} levels`
      while ((bytes[at + 1] ?? quote) <= space) at++
      if (bytes[at + 1] !== closeArray && bytes[at + 1] !== closeObject) values++
    } else if (byte === closeArray || byte === closeObject) {
      levels--
    } else if (byte === comma) {
      values++
    }
    if (values > most) return `more than ${most} values`
  }
}
