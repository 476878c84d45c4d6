// `; name=value`, the value quoted or not. A quote that is never closed ends with the header.
const parameter = /;\s*([^\s=;"]+)\s*=\s*(?:"((?:\\"|[^"])*)(?:"|$)|([^;]*))/g
// RFC 5987: charset'language'value, of which only these two charsets ever came into use.
const extended = /^(utf-8|iso-8859-1)'[^']*'(.*)$/i

/**
 * Reads the parameters of a Content-Type or Content-Disposition. Names are in lower case and the first of several holds.
 * In quotes only `\"` is an escape: some clients send a Windows path, and its backslashes are meant.
 */
export function parseParameters(header: string): Map<string, string> {
  const parameters = new Map<string, string>()
  for (const [, name = '', quoted, plain = ''] of header.matchAll(parameter)) {
    const key = name.toLowerCase()
    if (!parameters.has(key)) parameters.set(key, quoted === undefined ? plain.trim() : quoted.replaceAll('\\"', '"'))
  }
  return parameters
}

/**
 * Finds the name that a part gives its file: the `filename*` of RFC 5987, which older Python clients send instead of the
 * plain one, else `filename`. As the client wrote it, so it may be empty or hostile.
 *
 * @param disposition Content-Disposition of the part, one character per byte
 * @returns undefined when the part is no file
 */
export function parseFileName(disposition: string): string | undefined {
  const parameters = parseParameters(disposition)
  const plain = parameters.get('filename')
  const encoded = parameters.get('filename*')
  if (encoded !== undefined) return parseExtended(encoded) ?? plain ?? ''
  // Browsers escape these three and nothing else (HTML, "multipart/form-data encoding algorithm").
  return plain && Buffer.from(unescapeBytes(plain, /%(22|0D|0A)/gi), 'latin1').toString()
}

function parseExtended(value: string): string | undefined {
  const [, charset = '', text = ''] = extended.exec(value) ?? []
  if (charset === '') return undefined
  const bytes = unescapeBytes(text, /%([0-9a-f]{2})/gi)
  return charset.toLowerCase() === 'utf-8' ? Buffer.from(bytes, 'latin1').toString() : bytes
}

function unescapeBytes(text: string, escape: RegExp): string {
  return text.replace(escape, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)))
}
