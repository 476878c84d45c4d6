import { RelayError } from '../errors'
import { hasBody, looksLikeObject, parseBytes, parseFields, readBody, readFields, readJson, type BodyLimits, type Received } from '../http/body'
import { mediaTypeOf } from '../http/media-type'
import { either, mustBe } from '../lib/words'
import { say } from '../texts/text'
import type { JsonObject } from '../lib/shape'

/**
 * Reads the parameters of a call (OneBot 11, "HTTP") from the query and from the body of a POST, JSON or a form, which takes precedence.
 *
 * @throws RelayError `invalid-json`, `bad-request`, `unsupported-type` for a body of another type, and the errors of `readBody`
 */
export async function readParams(received: Received, query: URLSearchParams, limits: BodyLimits): Promise<JsonObject> {
  const body = received.request.method === 'POST' && hasBody(received) ? await readPosted(received, query, limits) : {}
  return { ...Object.fromEntries(query), ...body }
}

async function readPosted(received: Received, query: URLSearchParams, limits: BodyLimits): Promise<JsonObject> {
  const { 'content-type': type = '' } = received.request.headers
  const mediaType = mediaTypeOf(type)
  if (mediaType === 'application/json') return readFields(await readJson(received, limits, { allowsControls: true }))
  const source = await readBody(received, limits)
  // NapCat, too, accepts JSON with a wrong Content-Type.
  if (looksLikeObject(source)) return readFields(parseBytes(source, { allowsControls: true }))
  if (mediaType === 'application/x-www-form-urlencoded') return parseFields(source, type, query)
  throw new RelayError('unsupported-type', say('onebot-params-type'))
}

/**
 * Reads a boolean parameter in any of the forms of OneBot 11; false if it is absent or empty.
 *
 * @throws RelayError `bad-request`
 */
export function readFlag(params: JsonObject, name: string): boolean {
  const value = params[name] ?? ''
  const text = typeof value === 'string' ? value.toLowerCase() : value
  if (text === true || text === 1 || text === '1' || text === 'true' || text === 'yes') return true
  if (text === false || text === 0 || text === '0' || text === 'false' || text === 'no' || text === '') return false
  throw new RelayError('bad-request', mustBe(name, either('true', 'false')))
}
