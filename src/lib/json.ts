/** The most levels of arrays and objects within one another. */
const maxLevels = 64
/** The most values unless another number is asked for, each array and object among them; names of fields do not count. */
const maxValues = 20_000

const tooDeep = `more than ${maxLevels} levels`

/** What a byte means outside of a string. Zero: nothing that counts. */
const kind = { open: 1, close: 2, quote: 3, colon: 4, scalar: 5 } as const
const kinds = new Uint8Array(256)
for (const [characters, each] of [
  ['[{', kind.open], [']}', kind.close], ['"', kind.quote], [':', kind.colon],
  ['+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', kind.scalar],
] as const) {
  for (const byte of Buffer.from(characters)) kinds[byte] = each
}

const quote = 0x22
const backslash = 0x5c

/**
 * Tells what a JSON text (RFC 8259) has too much of, before it is parsed: a few megabytes can hold millions of values, each of which
 * would take a hundred bytes and more.
 *
 * @param bytes in UTF-8. Of what is no JSON, no more counts than a parser would read before it fails.
 * @param most the most values
 * @returns for a message, such as `more than 64 levels`; `undefined` when it is within the bounds
 */
export function excessOfJson(bytes: Buffer, most = maxValues): string | undefined {
  // Each value but the last has a byte of its own and one behind it.
  if (bytes.length <= 2 * most && !opensMoreThan(bytes, maxLevels)) return
  let levels = 0
  let values = 0
  for (let at = 0; at < bytes.length; at++) {
    switch (kinds[bytes[at] ?? 0]) {
      case kind.open:
        if (++levels > maxLevels) return tooDeep
        values++
        break
      case kind.close:
        levels--
        break
      case kind.quote:
        for (at++; at < bytes.length && bytes[at] !== quote; at++) if (bytes[at] === backslash) at++
        values++
        break
      case kind.colon:
        // The string before it was a name.
        values--
        break
      case kind.scalar:
        while (kinds[bytes[at + 1] ?? 0] === kind.scalar) at++
        values++
        break
    }
    if (values > most) return tooMany(most)
  }
}

/** Whether there are more opening brackets than that, be it within strings. Most bodies have few, and this is the fastest way to tell. */
function opensMoreThan(bytes: Buffer, most: number): boolean {
  let count = 0
  for (const bracket of ['[', '{'] as const) {
    const code = bracket.charCodeAt(0)
    for (let at = bytes.indexOf(code); at >= 0; at = bytes.indexOf(code, at + 1)) if (++count > most) return true
  }
  return false
}

/** The same for JSON that somebody else has parsed. */
export function excessOfValue(value: unknown): string | undefined {
  // Level by level, because a call for each level would overflow the stack.
  let level: readonly unknown[] = [value]
  let values = 1
  for (let levels = 0; level.length > 0; levels++) {
    const below: unknown[] = []
    for (const each of level) {
      if (typeof each !== 'object' || each === null) continue
      if (levels === maxLevels) return tooDeep
      const children: readonly unknown[] = Array.isArray(each) ? each : Object.values(each)
      values += children.length
      if (values > maxValues) return tooMany(maxValues)
      for (const child of children) below.push(child)
    }
    level = below
  }
}

function tooMany(most: number): string {
  return `more than ${most} values`
}
