/** A text parsed as JSON; `undefined` for anything else. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The most levels of nested arrays and objects. */
const maxLevels = 64
/** The most values, arrays and objects included, names of fields not. */
const maxValues = 20_000

const [space = 0, quote = 0, backslash, comma, openArray, closeArray, openObject, closeObject] = Buffer.from(' "\\,[]{}')

/**
 * Checks the bounds of a JSON text (RFC 8259) before it is parsed: a few megabytes can hold millions of values, and each of them takes a
 * hundred bytes of memory or more.
 *
 * @param bytes in UTF-8; malformed JSON counts up to where a parser fails
 * @param most the most values
 * @returns the excess in words, such as `more than 64 levels`; `undefined` within the bounds
 */
export function excessOfJson(bytes: Buffer, most = maxValues): string | undefined {
  let levels = 0
  // The outermost value, the first value of each container that is not empty, and the value behind each comma.
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
