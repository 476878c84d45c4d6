import { isObject, type JsonObject } from '../../src/lib/shape'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020'
import addFormats from 'ajv-formats'
import { load } from 'js-yaml'
import type { Context } from 'koishi'
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** `docs/openapi.yaml`, as text and parsed. */
export const source = readFileSync(join(__dirname, '../../docs/openapi.yaml'), 'utf8')
export const document = read()

/** The methods that a path of the document may have. */
export const methods = ['get', 'head', 'post', 'put', 'patch', 'delete', 'options', 'trace'] as const

/** An object in the document, and the JSON pointer to it. */
export interface Place {
  pointer: string
  value: JsonObject
}

/** An answer of the plugin. */
interface Answer {
  method: string
  /** The route in the router's syntax, with the prefix of the plugin. */
  route: string
  status: number
  headers: ReadonlyMap<string, string>
  /** The raw body; empty if no text was sent. */
  body: string
}

// Headers that HTTP and Koa add to any answer.
const commonHeaders = new Set(['content-type', 'content-length', 'connection', 'date', 'keep-alive', 'transfer-encoding', 'vary'])

/** Answers to a method that a path does not support. The document cannot describe them, because there is no operation. */
const otherMethods: Readonly<Record<number, string>> = { 401: 'Unauthorized', 405: 'MethodNotAllowed', 500: 'InternalError', 503: 'Stopping' }

/** The problems found since the last `assertConforming`, each once. */
const problems = new Set<string>()

const validators = new Map<string, ValidateFunction>()
let ajv: Ajv2020 | undefined

/**
 * Compares every answer of this app's routes with the document. This happens inside the server, so that every client is covered. Must be
 * called before the plugin is loaded; `assertConforming` reports the problems.
 */
export function watchAnswers(app: Context): void {
  app.inject(['server'], ({ server }) => {
    const watch: Parameters<typeof server.all>[1] = async (context, next) => {
      await next()
      // Its client went away: there is no answer.
      if (context.respond === false && context.req.socket.destroyed) return
      const { method, status, response } = context
      const body: unknown = context.body
      const headers = new Map(Object.entries(response.headers).map(([name, value]) => [name, String(value)]))
      const answer = { method, route: String(context._matchedRoute), status, headers, body: typeof body === 'string' ? body : '' }
      for (const problem of problemsOf(answer)) problems.add(problem)
    }
    // Without this, the server would read the body of every request before it is handled.
    server.use(Object.assign(watch, { [Symbol.for('noParseBody')]: true }))
  })
}

/**
 * Compares the body of a fully successful send with the document. A schema stricter than the relay would make callers avoid valid requests.
 */
export function watchRequest(path: string, body: unknown, { headers }: Response): void {
  if (!path.endsWith('/webhook') || typeof body !== 'string' || headers.get('relay-outcome') !== 'sent') return
  for (const problem of schemaProblems('/components/schemas/SendRequest', JSON.parse(body.replace(/^\ufeff/, '')))) {
    problems.add(`POST /webhook, which was sent: ${problem}\n  ${body.slice(0, 300)}`)
  }
}

/** Fails if any watched answer or request since the last call does not conform to the document. */
export function assertConforming(): void {
  const found = [...problems]
  problems.clear()
  assert.equal(found.length, 0, `not as docs/openapi.yaml has it:\n${found.join('\n')}`)
}

/** The differences between an answer and the document; none for undocumented routes. */
function problemsOf({ method, route, status, headers, body }: Answer): string[] {
  const path = documentedPath(route)
  if (path === undefined) return []
  const operation = placeOf('paths', path, method.toLowerCase())
  const name = otherMethods[status]
  const response = operation
    ? placeOf('paths', path, method.toLowerCase(), 'responses', String(status))
    : name && placeOf('components', 'responses', name)
  const found = response ? [...headerProblems(response, headers), ...bodyProblems(response, headers, body)] : ['this status is not documented']
  return found.map(problem => `${method} ${path} -> ${status}: ${problem}${body && `\n  ${body.slice(0, 300)}`}`)
}

/**
 * The differences between a JSON value and the schema at a place of the document.
 *
 * @param pointer JSON pointer into the document
 */
export function schemaProblems(pointer: string, value: unknown): string[] {
  const validate = validatorOf(pointer)
  if (validate(value)) return []
  return (validate.errors ?? []).map(({ instancePath, message = '', params }) => `${instancePath || 'it'} ${message} ${JSON.stringify(params)}`)
}

/** The object at this path of the document, with references resolved; `undefined` if there is none. */
export function placeOf(...keys: readonly string[]): Place | undefined {
  let place: Place | undefined = { pointer: '', value: document }
  for (const key of keys) {
    const value: unknown = place.value[key]
    if (!isObject(value)) return
    place = follow({ pointer: `${place.pointer}/${escape(key)}`, value })
    if (!place) return
  }
  return place
}

/** The paths of the document. */
export function documentedPaths(): string[] {
  return Object.keys(placeOf('paths')?.value ?? {})
}

/** A path of the router without its patterns, and without what clients append. */
export function plainPath(route: string): string {
  return route.replace(/\(\/[^)]*\)/g, '/').replace(/\([^)]*\)/g, '').replace('/:tail', '')
}

/** The documented path of a route of the router, which may have a prefix. */
export function documentedPath(route: string): string | undefined {
  const path = plainPath(route).replace(/:(\w+)\??/g, '{$1}')
  return documentedPaths().find(known => path.endsWith(known))
}

function headerProblems(response: Place, headers: Answer['headers']): string[] {
  const documented = fieldsOf(response, 'headers')
  const names = new Set(documented.map(([name]) => name.toLowerCase()))
  return [
    ...documented.flatMap(([name, { pointer, value }]) => {
      const text = headers.get(name.toLowerCase())
      if (text === undefined) return value.required === true ? [`the header ${name} is missing`] : []
      return schemaProblems(`${pointer}/schema`, headerValue(value, text)).map(problem => `the header ${name}: ${text}: ${problem}`)
    }),
    ...[...headers.keys()].filter(name => !names.has(name) && !commonHeaders.has(name)).map(name => `the header ${name} is not documented`),
  ]
}

/** A header in the type of its schema: a number if the schema demands one. */
function headerValue({ schema }: JsonObject, text: string): unknown {
  return isObject(schema) && schema.type === 'integer' && /^\d+$/.test(text) ? Number(text) : text
}

function bodyProblems(response: Place, headers: Answer['headers'], body: string): string[] {
  const contents = fieldsOf(response, 'content')
  // The answer to HEAD has the headers of a body, but no body.
  if (contents.length === 0) return []
  const type = headers.get('content-type')?.split(';', 1).join('') ?? 'no type'
  // A download has the type that was uploaded (OpenAPI 3.1, "Media Type": a range of types).
  const [, content] = contents.find(([name]) => name === type || name === '*/*') ?? []
  if (!content) return [`${type} is not documented`]
  if (content.value.schema === undefined) return []
  try {
    return schemaProblems(`${content.pointer}/schema`, JSON.parse(body))
  } catch (error) {
    return [`the body is no JSON: ${String(error)}`]
  }
}

/** The objects in a field of an object, with references resolved. */
export function fieldsOf(place: Place, field: string): [name: string, place: Place][] {
  const fields = place.value[field]
  if (!isObject(fields)) return []
  return Object.entries(fields).flatMap(([name, value]) => {
    const target = isObject(value) ? follow({ pointer: `${place.pointer}/${escape(field)}/${escape(name)}`, value }) : undefined
    return target ? [[name, target] satisfies [string, Place]] : []
  })
}

function follow(place: Place): Place | undefined {
  const { $ref: reference } = place.value
  if (typeof reference !== 'string') return place
  return placeOf(...reference.replace(/^#\//, '').split('/').map(unescape))
}

function validatorOf(place: string): ValidateFunction {
  ajv ??= createAjv()
  // A schema that several places refer to is compiled once.
  const pointer = placeOf(...place.slice(1).split('/').map(unescape))?.pointer ?? place
  let validate = validators.get(pointer)
  if (!validate) {
    validate = ajv.compile({ $ref: `openapi.yaml#${encodeURI(pointer)}` })
    validators.set(pointer, validate)
  }
  return validate
}

function createAjv(): Ajv2020 {
  // Another test validates the schemas themselves; that would take as long again.
  const created = new Ajv2020({ meta: false, validateSchema: false, allErrors: true, allowUnionTypes: true, strictTypes: false })
  addFormats(created)
  // The document is not a schema itself, but contains some.
  created.addVocabulary(Object.keys(document))
  created.addSchema(document, 'openapi.yaml')
  return created
}

function read(): JsonObject {
  const parsed = load(source)
  assert(isObject(parsed))
  return parsed
}

function escape(key: string): string {
  return key.replace(/~/g, '~0').replace(/\//g, '~1')
}

function unescape(key: string): string {
  return key.replace(/~1/g, '/').replace(/~0/g, '~')
}
