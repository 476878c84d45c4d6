import { RelayError } from '../errors'
import { parseJson, refuseEncoding } from '../http/body'
import { decodeText } from '../http/media-type'
import type { Exchange } from '../http/routes'
import { isObject, type JsonObject } from '../message/parse'
import { MultipartReader, parseFileName, parseParameters } from '../uploads/multipart'
import { parseBoundary } from '../uploads/receive'
import type { HookRequest, SignedRequest, Source } from './source'

/** The most fields of a form. */
const maxFields = 1_000
/** The most values of a payload: a push may have thousands of commits, and a group thousands of alerts, of which a few are told. */
const maxValues = 250_000

/** The parameters of the address that are the relay's own, and part of no payload. */
const ownParameters = ['key', 'access_token', 'events', 'branch', 'status', 'lang', 'dry_run', 'fail', 'expires_in']

/** In a form with this field alone, its JSON is the payload. */
const wrappers: ReadonlySet<string> = new Set(['payload', 'payload_json', 'data'])

/**
 * Reads what was posted, as bytes. There are none with GET, and where another plugin has read the body: a signature of that cannot be
 * checked.
 *
 * @param read reads those of the request
 * @throws RelayError `unsupported-type`, and those of `read`
 */
export async function receiveHook({ request, parsedBody }: Exchange, read: () => Promise<Buffer>): Promise<SignedRequest> {
  const { headers, method } = request
  if (method !== 'POST' || isParsed(parsedBody)) return { headers, raw: Buffer.alloc(0) }
  refuseEncoding(request)
  return { headers, raw: typeof parsedBody === 'string' ? Buffer.from(parsedBody) : await read() }
}

/**
 * Reads the payload of what was received.
 *
 * @throws RelayError `invalid-json`, `bad-request`
 */
export function parseHook(exchange: Exchange, { headers, raw }: SignedRequest, source: Source): HookRequest {
  const { request: { method }, parsedBody } = exchange
  const query = new URLSearchParams(exchange.query)
  for (const name of ownParameters) query.delete(name)
  if (isParsed(parsedBody)) return { headers, query, raw, payload: parsedBody }
  const payload = method === 'POST' ? parsePayload(raw, headers['content-type'] ?? '', source.textFields, query) : fieldsOf(query)
  return { headers, query, raw, payload }
}

function isParsed(body: unknown): body is JsonObject {
  return isObject(body) && Object.keys(body).length > 0
}

/** @param textFields those of the source, where a body may be its text as well */
function parsePayload(raw: Buffer, type: string, textFields: readonly string[] | undefined, query: URLSearchParams): JsonObject {
  // What there is may stand in the query.
  if (textFields && raw.length === 0) return {}
  if (/^\s*multipart\/form-data/i.test(type)) return unwrap(readMultipart(raw, type))
  // Many a script sends JSON and says that it is something else.
  const looksLikeJson = /^\ufeff?\s*\{/.test(raw.toString('utf8', 0, 64))
  const isForm = /^\s*application\/x-www-form-urlencoded/i.test(type)
  if (isForm && !looksLikeJson && raw.includes('=')) {
    const form = unwrap(readForm(raw))
    // curl calls whatever it posts a form, `disk=95%` as well.
    const isOne = textFields?.some(name => name in form || query.has(name)) ?? true
    if (isOne) return form
  }
  if (textFields && !/json/i.test(type)) return (looksLikeJson ? jsonOf(raw) : undefined) ?? { text: decodeText(raw, type) }
  return readObject(raw)
}

/** An object, `undefined` where the text only looked like one. */
function jsonOf(raw: Buffer): JsonObject | undefined {
  try {
    return readObject(raw)
  } catch (error) {
    if (error instanceof RelayError && error.code === 'invalid-json') return
    throw error
  }
}

function readObject(source: Buffer): JsonObject {
  const value = parseJson(source, maxValues)
  if (!isObject(value)) throw new RelayError('bad-request', 'the payload must be a JSON object')
  return value
}

function readForm(raw: Buffer): JsonObject {
  refuseTooMany(countOf(raw, '&'.charCodeAt(0)))
  return fieldsOf(new URLSearchParams(raw.toString()))
}

function countOf(raw: Buffer, byte: number): number {
  let count = 1
  for (let at = raw.indexOf(byte); at >= 0 && count <= maxFields; at = raw.indexOf(byte, at + 1)) count++
  return count
}

function refuseTooMany(count: number): void {
  if (count > maxFields) throw new RelayError('bad-request', `a form may have at most ${maxFields} fields`)
}

function fieldsOf(parameters: URLSearchParams): JsonObject {
  return Object.fromEntries(parameters)
}

/** The fields of a multipart body; its files do not count. */
function readMultipart(raw: Buffer, type: string): JsonObject {
  const fields: [name: string, pieces: Buffer[]][] = []
  let pieces: Buffer[] | undefined
  let count = 0
  const reader = new MultipartReader(parseBoundary(type), {
    onPart(headers) {
      // Files as well: each part takes its time, and whoever signs is not known before.
      refuseTooMany(++count)
      const disposition = headers.get('content-disposition') ?? ''
      pieces = parseFileName(disposition) === undefined ? [] : undefined
      if (!pieces) return
      fields.push([Buffer.from(parseParameters(disposition).get('name') ?? '', 'latin1').toString(), pieces])
    },
    onContent(bytes) {
      pieces?.push(bytes)
    },
    onPartEnd() {
      pieces = undefined
    },
  })
  reader.push(raw)
  reader.end()
  return Object.fromEntries(fields.map(([name, parts]) => [name, Buffer.concat(parts).toString()]))
}

function unwrap(form: JsonObject): JsonObject {
  const [[name, value] = ['', ''], ...others] = Object.entries(form)
  if (others.length > 0 || !wrappers.has(name) || typeof value !== 'string' || !/^\s*\{/.test(value)) return form
  return readObject(Buffer.from(value))
}
