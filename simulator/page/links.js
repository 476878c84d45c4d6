/** The characters of an address (RFC 3986). Adjacent Chinese text has other characters, so that it never becomes part of the address. */
const ADDRESS = /\bhttps?:\/\/[\w\-.~:/?#[\]@!$&'()*+,;=%]+/gi

/** Punctuation that ends a sentence rather than an address. */
const PUNCTUATION = '.,:;!?\'*'

/** An address without the punctuation after it. A closing bracket belongs to the address if its opening bracket does. */
function trimmed(address) {
  const surplus = { ')': address.split(')').length - address.split('(').length, ']': address.split(']').length - address.split('[').length }
  let end = address.length
  for (; end > 0; end--) {
    const last = address[end - 1]
    if (surplus[last] > 0) surplus[last]--
    else if (!PUNCTUATION.includes(last)) break
  }
  return address.slice(0, end)
}

/**
 * Splits a text into addresses and the text between them. The joined pieces are the original text.
 * @param {string} text
 * @returns {{ text: string, href: string | null }[]} `href` only for http and https
 */
export function splitLinks(text) {
  const pieces = []
  let end = 0
  for (const { 0: found, index } of text.matchAll(ADDRESS)) {
    const address = trimmed(found)
    if (!URL.canParse(address)) continue
    if (index > end) pieces.push({ text: text.slice(end, index), href: null })
    pieces.push({ text: address, href: new URL(address).href })
    end = index + address.length
  }
  if (end < text.length) pieces.push({ text: text.slice(end), href: null })
  return pieces
}
