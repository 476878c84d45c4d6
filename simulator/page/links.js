/**
 * What may stand in an address (RFC 3986). Chinese text beside it has other characters, so that it is never taken into the address.
 */
const ADDRESS = /\bhttps?:\/\/[\w\-.~:/?#[\]@!$&'()*+,;=%]+/gi

/** What ends a sentence rather than an address. */
const PUNCTUATION = '.,:;!?\'*'

/** An address without the punctuation after it; a bracket belongs to it when it was opened in it. */
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
 * Cuts a text where addresses begin and end; joined again, the pieces are the text.
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
