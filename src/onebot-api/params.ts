import { RelayError } from '../errors'
import { hasBody, readBody, readJson, type BodyLimits, type Received } from '../http/body'
import { isObject, type JsonObject } from '../lib/shape'

/** The most fields of a form. No action has more than a few. */
const maxFields = 1000

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Reads the parameters of a call (OneBot 11, "HTTP"): those of the query, and those of the body of a POST, JSON or a form, which win.
 *
 * @param stop aborted when the relay is stopping
 * @throws RelayError `invalid-json`, `bad-request`, `unsupported-type` for a body of another type, and those of `readBody`
 */
export async function readParams(received: Received, query: URLSearchParams, limits: BodyLimits, stop: AbortSignal): Promise<JsonObject> {
  const body = received.request.method === 'POST' && hasBody(received) ? await readFields(received, limits, stop) : {}
  // What is null counts as left out.
  const given = Object.entries(body).filter(([, value]) => value !== null)
  return { ...Object.fromEntries(query), ...Object.fromEntries(given) }
}

async function readFields(received: Received, limits: BodyLimits, stop: AbortSignal): Promise<JsonObject> {
  const { request, parsedBody } = received
  switch (request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase()) {
    case 'application/json': {
      const body = await readJson(received, limits, stop)
      if (!isObject(body)) throw new RelayError('bad-request', 'the body must be a JSON object')
      return body
    }
    case 'application/x-www-form-urlencoded':
      if (isObject(parsedBody)) return parsedBody
      if (typeof parsedBody === 'string') return parseForm(parsedBody)
      return parseForm(decode(await readBody(request, limits, stop)))
    default:
      throw new RelayError('unsupported-type', 'send the parameters as application/json or application/x-www-form-urlencoded, or in the query')
  }
}

function decode(body: Buffer): string {
  try {
    return utf8.decode(body)
  } catch {
    throw new RelayError('bad-request', 'the form must be in UTF-8')
  }
}

function parseForm(source: string): JsonObject {
  if (source.split('&', maxFields + 1).length > maxFields) throw new RelayError('bad-request', `the form has more than ${maxFields} fields`)
  return Object.fromEntries(new URLSearchParams(source))
}

/**
 * Reads a parameter that is yes or no, in the words that OneBot 11 has for that; no where it is left out.
 *
 * @throws RelayError `bad-request`
 */
export function readFlag(params: JsonObject, name: string): boolean {
  const value = params[name] ?? ''
  const text = typeof value === 'string' ? value.toLowerCase() : value
  if (text === true || text === 1 || text === '1' || text === 'true' || text === 'yes') return true
  if (text === false || text === 0 || text === '0' || text === 'false' || text === 'no' || text === '') return false
  throw new RelayError('bad-request', `${name} must be true or false`)
}
