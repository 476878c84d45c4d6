import { Readable } from 'node:stream'
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { credentialsOf, queryCredentialsOf } from '../access/origin'
import { RelayError } from '../errors'
import { looksLikeObject, parseBytes, parseFields } from '../http/body'
import { decodeText } from '../http/media-type'
import { readChoice } from '../http/preferences'
import type { Exchange } from '../http/routes'
import { isObject, type JsonObject } from '../lib/shape'
import { parseForm } from '../uploads/multipart'
import { say } from '../texts/text'
import { isKeyField, keysInPath, maxKeys, type HookAddress } from './address'
import { formats } from './declared'
import { header } from './fields'
import type { HookRequest, Source } from './source'

/** How much of a multipart body is parsed at a time, in bytes. */
const sliceSize = 64 * 1024
/** The most values of a payload: a push may have thousands of commits and a group thousands of alerts, though messages show only a few. */
const maxValues = 250_000

/** The query parameters of the relay itself. They are not part of the payload. */
const ownParameters = [
  'key', 'access_token', 'events', 'branch', 'status', 'lang', 'format', 'dry_run', 'fail', 'expires_in', 'charset', 'urgent', 'send_at', 'thread',
  'thread_mode', 'mention',
]

/** The parameters with the key that every source has. */
const relayKeys = ['key', 'access_token']

/** Whether a form begins with JSON that is not escaped. */
function hasPayload(form: Buffer): boolean {
  return form.toString('latin1', 0, 9) === 'payload={'
}

/** Fields whose JSON is the payload, if a form has no other field. */
const wrappers: ReadonlySet<string> = new Set(['payload', 'payload_json', 'data'])

/** Two fields or more, without blanks, are no text that curl declares as a form. */
const severalFields = /^[\w.[\]-]{1,100}=[^&\s]*(?:&[\w.[\]-]{1,100}=[^&\s]*)+$/

/**
 * Reads the payload of a request, without its keys.
 *
 * @param texts the texts in the path, which count if there is no body
 * @throws RelayError `invalid-json`, `bad-request`
 */
export async function parseHook(
  exchange: Exchange, raw: Buffer, source: Source, texts: Readonly<Record<string, string>> = {},
): Promise<HookRequest> {
  const { method, headers } = exchange.request
  const isKey = (name: string): boolean => source.takesTail === true && isKeyField(name)
  const known = [...exchange.query].filter(([name]) => !ownParameters.includes(name) && !isKey(name))
  const query = new URLSearchParams([...raw.length === 0 ? Object.entries(texts) : [], ...known])
  const payload = method === 'GET' ? Object.fromEntries(query) : await parsePayload(exchange, raw, source.textFields, query)
  const format = readChoice(exchange.query, 'format', formats)
  return { headers, query, raw, format, payload: Object.fromEntries(Object.entries(payload).filter(([name]) => !isKey(name))) }
}

/** The keys in the fields of a body that has not been authenticated; none if it cannot be read. */
export async function keysInBody(exchange: Exchange, raw: Buffer, { textFields }: Source): Promise<Buffer[]> {
  const payload = await parsePayload(exchange, raw, textFields, new URLSearchParams()).catch((error: unknown) => {
    if (error instanceof RelayError) return {}
    throw error
  })
  const given = Object.entries(payload).flatMap(([name, value]) => isKeyField(name) ? value : [])
  return given.slice(0, maxKeys).flatMap(value => typeof value === 'string' && value !== '' ? [Buffer.from(value)] : [])
}

/**
 * Escapes what 青龙 (`sample/notify.js` of whyour/qinglong) leaves as it is in its forms for PushDeer (`pushDeerNotify`), and for Synology
 * Chat, whose field is JSON (`chatNotify`): an `&`, behind which no field begins, and, beside blanks that are escaped as `%20` or not at
 * all, a `+`.
 */
function mendForm(form: Buffer): Buffer {
  const text = form.toString('latin1')
  const isJson = hasPayload(form)
  if (!isJson && !/(?:^|&)pushkey=/.test(text)) return form
  const mended = text.replace(isJson ? /&([^&]*)/g : /&(?!(?:pushkey|text|desp|type)=)([^&]*)/g, (_whole, rest: string) => `%26${rest.replaceAll('=', '%3D')}`)
  return Buffer.from(/%20| /.test(mended) ? mended.replaceAll('+', '%2B') : mended, 'latin1')
}

/**
 * @param textFields `Source.textFields`; absent if the body cannot be plain text
 * @param query without the parameters of the relay itself
 */
async function parsePayload(
  exchange: Exchange, raw: Buffer, textFields: readonly string[] | undefined, query: URLSearchParams,
): Promise<JsonObject> {
  const type = exchange.request.headers['content-type'] ?? ''
  // The message may be in the query.
  if (textFields && raw.length === 0) return {}
  const looksLikeJson = looksLikeObject(raw)
  if (/^\s*multipart\/form-data/i.test(type) && !looksLikeJson) return unwrap(await readMultipart(raw, type))
  // `sample/notify.py` of 青龙 (`chat`) declares nothing.
  const isForm = /^\s*application\/x-www-form-urlencoded/i.test(type) || hasPayload(raw)
  if (isForm && !looksLikeJson && raw.includes('=')) {
    const given = parseFields(mendForm(raw), type, exchange.query)
    const form = unwrap(given)
    // curl declares every body a form, even `disk=95%`.
    const isOne = !textFields || textFields.some(name => name in form || query.has(name)) || Object.keys(form).some(isKeyField)
    if (isOne || form !== given || severalFields.test(raw.toString('latin1'))) return form
  }
  // The service "generic" of shoutrrr declares plain text as JSON unless it has a template: pkg/services/generic of containrrr/shoutrrr.
  const saysJson = /json/i.test(type)
  if (textFields && !(saysJson && looksLikeJson)) {
    return (saysJson || looksLikeJson ? jsonOf(raw) : undefined) ?? { text: decodeText(raw, type) }
  }
  return readObject(raw)
}

/** Parses a JSON object; returns `undefined` if the text is not JSON. */
function jsonOf(raw: Buffer): JsonObject | undefined {
  try {
    return readObject(raw)
  } catch (error) {
    if (error instanceof RelayError && error.code === 'invalid-json') return
    throw error
  }
}

function readObject(source: Buffer): JsonObject {
  const parsed = parseBytes(source, { maxValues, allowsControls: true })
  // Some systems post lists of events.
  const list: unknown[] = Array.isArray(parsed) && parsed.some(isObject) ? parsed : [parsed]
  const value = list.length === 1 ? list[0] : { events: list }
  if (!isObject(value)) throw new RelayError('bad-request', say('payload-no-object'))
  return value
}

/** Reads the fields of a multipart body and ignores its files. */
async function readMultipart(raw: Buffer, type: string): Promise<JsonObject> {
  const fields: [name: string, type: string, pieces: Buffer[]][] = []
  await parseForm(Readable.from(slices(raw), { autoDestroy: false }), type, ({ name, fileName, type, content }) => {
    if (fileName !== undefined) return
    const pieces: Buffer[] = []
    fields.push([name, type, pieces])
    content.on('data', (bytes: Buffer) => pieces.push(bytes))
  })
  return Object.fromEntries(fields.map(([name, type, pieces]) => [name, decodeText(Buffer.concat(pieces), type)]))
}

/** Cuts a body into slices, and lets other requests run between them. */
async function* slices(raw: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < raw.length; at += sliceSize) {
    yield raw.subarray(at, at + sliceSize)
    await yieldToOthers()
  }
}

function unwrap(form: JsonObject): JsonObject {
  const [[name, value] = ['', ''], ...others] = Object.entries(form)
  if (others.length > 0 || !wrappers.has(name) || typeof value !== 'string' || !/^\s*\{/.test(value)) return form
  return readObject(Buffer.from(value))
}

/**
 * The keys of a request, from all places outside its body where senders can put one: the headers of the relay, the password of Basic
 * (RFC 7617, with any user name), the key header of the source, and the path and the parameters of the query. `auth` is the header
 * Authorization in base64, as ntfy has it.
 *
 * @throws RelayError `unauthorized` if the query has `key` or `access_token` several times with different values
 */
export function hookCredentialsOf({ request: { headers }, query }: Exchange, { door, source, segments }: HookAddress): Buffer[] {
  const names = [...new Set([...relayKeys, ...door?.takesTail ? query.keys() : []])].filter(isKeyField).slice(0, maxKeys)
  const inQuery = names.flatMap(name => queryCredentialsOf(query, name, 'unauthorized'))
  const encoded = Buffer.from(query.get('auth') ?? '', 'base64').toString('latin1')
  const own = source?.keyHeader === undefined ? '' : header(headers, source.keyHeader)
  return [
    ...credentialsOf(headers), Buffer.from(own, 'latin1'), passwordIn(headers.authorization), ...inQuery,
    ...credentialsOf({ authorization: encoded }), passwordIn(encoded), ...door?.takesTail ? keysInPath(segments) : [],
    // A path that was appended to the query ends a key.
    ...inQuery.map(each => each.subarray(0, Math.max(each.indexOf('/'), 0))),
  ].filter(({ length }) => length > 0)
}

/** The password of Basic (RFC 7617). */
function passwordIn(authorization = ''): Buffer {
  const pair = Buffer.from(/^Basic +([A-Za-z0-9+/_-]+=*)$/i.exec(authorization)?.[1] ?? '', 'base64')
  return pair.subarray(pair.indexOf(':') + 1)
}
