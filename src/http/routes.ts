// How an answer is made: the handler of a route returns its data, headers and result for the log, or throws a RelayError. Only this file
// writes it to the client, usually in the envelope, and logs the request. What deliveries and queues look like in the data: `views.ts`.
import type { Server } from '@koishijs/plugin-server'
import type { ServerResponse } from 'node:http'
import { v7 as uuid } from 'uuid'
import type { Access } from '../access/access'
import { Caller } from '../access/caller'
import { consoleName } from '../access/keys'
import { addressOf, credentialsOf, flawOfCredentials } from '../access/origin'
import type { Refusals } from '../access/refusals'
import type { Scope } from '../access/scopes'
import { RelayError, type ErrorCode } from '../errors'
import type { InFlight } from '../lib/async'
import { parsePairs } from '../lib/bytes'
import { describeError, type Log } from '../lib/log'
import { languageAsked, type Language } from '../texts/language'
import { say, Text, words, writer } from '../texts/text'
import { decodeAddress, discardBody, type Received } from './body'

/** A request that is being answered. */
export interface Exchange extends Received {
  /**
   * A UUIDv7, so that IDs sort by time. It links the answer (`X-Request-Id`) to the log, and becomes the ID of the delivery that the
   * request asks for.
   */
  readonly id: string
  /** Only for handlers that answer by themselves; others return their headers. */
  readonly response: ServerResponse
  /** Returns a signal that is aborted if the client disconnects before it has its answer. */
  readonly gone: () => AbortSignal
  /** Its path without the prefix, as sent: percent-encoded. */
  readonly path: string
  /** The parameters of the path, decoded. */
  readonly params: Readonly<Partial<Record<string, string>>>
  /** @throws RelayError `bad-request` if it is not text in its charset */
  readonly query: URLSearchParams
  /** The language of the answer. */
  readonly language: Language
  /** The address of the caller; `undefined` if it is unknown. */
  readonly address: string | undefined
  /** The caller. It has no rights until its key is checked, and on paths without a key. */
  caller: Caller
  /** For the log, also if the request fails: its target. */
  target?: string
  /** For the log, also if the request fails: the fields of the body without a meaning, safe for one line. */
  ignored?: readonly string[]
}

/** The parts that every answer can have. */
interface Told {
  headers?: RelayError['headers']
  /** The result for the log; `ok` by default. */
  log?: Text | string
}

/** `data` of the envelope, and the status, 200 by default. */
export interface Success extends Told {
  data: object
  status?: number
}

/** An answer without the envelope, for callers that were not written for the relay. */
export interface PlainAnswer extends Told {
  status: number
  /** Its Content-Type. */
  type: string
  /** A text or JSON is written in the language of the request. JSON ends with a newline, for terminals and programs that read lines. */
  body: string | object
}

/** A success, an answer without the envelope, or `sent` if the handler has answered by itself. */
export type Answer = Success | PlainAnswer | 'sent'

/** One method of one path of the plugin. */
export interface Route {
  /** In the syntax of Koishi's router, with parameters as `:name`. Logs and metrics name the route by it, logs with the source. */
  path: string
  /** What the router matches instead of the path. All routes of a path share it. */
  pattern?: string
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** The scopes of which the key must have one. On one path, either all routes require a key or none does. */
  allow: 'anyone' | readonly [Scope, ...Scope[]]
  /** Whether successful requests are logged as debug lines only, because monitoring asks every few seconds. */
  quiet?: boolean
  /** @throws RelayError */
  handle: (exchange: Exchange) => Answer | Promise<Answer>
  /**
   * Identifies the caller, if callers authenticate in another way than by the headers of the relay. All routes of a path share the same
   * function.
   *
   * @throws RelayError `unauthorized`
   */
  identify?: (exchange: Exchange, access: Access) => Caller | Promise<Caller>
  /** Writes a failure in the shape that the callers of the route expect, instead of the envelope. */
  fail?: (error: RelayError, exchange: Exchange) => PlainAnswer
  /**
   * The methods of an address; by default those of the routes of its path, and HEAD if there is GET. An address whose GET has an effect
   * offers no HEAD, which must have none (RFC 9110, section 9.2.1). All routes of a path share the same function.
   */
  methods?: (exchange: Exchange) => readonly string[]
}

/** Makes a route whose callers authenticate with a key of the relay and get the envelope. */
export function route(
  method: Route['method'], path: string, allow: Route['allow'], handle: Route['handle'], further: Pick<Route, 'quiet' | 'methods'> = {},
): Route {
  return { method, path, allow, handle, ...further }
}

/** Observes answered requests. */
export interface RequestObserver {
  /**
   * @param route its path without the prefix
   * @param method `undefined` if the path has no such method
   */
  answered: (route: string, method: string | undefined, status: number) => void
}

/** Options that all routes share. */
export interface RouteOptions {
  /** The prefix of each path. */
  prefix: string
  access: Access
  /** Resolves when the keys that were made while the relay ran can be read, or a short time after the start. */
  ready: () => Promise<unknown>
  /** The number of proxies in front of the relay. */
  trustedProxies: number
  /** Aborted when the relay stops. */
  stop: AbortSignal
  /** Counts the unanswered requests. */
  inFlight: InFlight
  /** Counts the refused requests. */
  refusals: Refusals
  observer: RequestObserver
  logger: Log
}

type Context = Parameters<Parameters<Server['all']>[1]>[0]

// Tell the server of the bot not to read a body, and mark a body that it has read: as in @cordisjs/plugin-server 0.2.9 and koa-body 6.0.1.
const noParseBody = Symbol.for('noParseBody')
const isBodyParsed = Symbol.for('isBodyParsed')
const unparsedBody = Symbol.for('unparsedBody')

/**
 * Registers routes on the server of the bot; they are removed when the plugin is disposed. Each request is authorized, answered in the
 * envelope `{code, msg, data}` and logged here.
 */
export function registerRoutes(server: Server, routes: readonly Route[], options: RouteOptions): void {
  for (const path of new Set(routes.map(route => route.path))) {
    const own = routes.filter(route => route.path === path)
    const handler = handlerOf(path, own, options)
    // Without this the server would parse and store bodies before the key is checked.
    server.all(options.prefix + (own[0]?.pattern ?? path), Object.assign(handler, { [noParseBody]: true }))
  }
}

/** @param routes the routes of the path, one per method; either all of them require a key, or none does */
function handlerOf(path: string, routes: readonly Route[], options: RouteOptions): (context: Context) => Promise<void> {
  const { access, ready, inFlight, observer } = options
  const [first] = routes
  const byMethod = new Map(routes.flatMap(route => {
    const methods = route.method === 'GET' && !route.methods ? ['GET', 'HEAD'] : [route.method]
    return methods.map(method => [method, route])
  }))

  return async context => {
    // Koa would print a stack for each client that disconnects, and a request that is handled has a log line anyway.
    context.onerror = (failed: Error | null) => {
      if (failed) context.res.destroy()
    }
    if (!await takeTurn(context)) {
      context.respond = false
      return
    }
    const started = performance.now()
    const exchange = toExchange(context, options)
    const { request, response, address } = exchange
    const route = byMethod.get(context.method)
    const guarded = route ?? first
    let leave: (() => void) | undefined
    let error: RelayError | undefined
    let answer: PlainAnswer | 'sent'
    response.setHeader('X-Request-Id', exchange.id)
    try {
      leave = inFlight.tryToEnter()
      // An earlier request with this key may still be in flight, so a plain refusal could be wrong.
      if (!leave && 'idempotency-key' in request.headers) throw new RelayError('stopping', say('stopping-try-later'), { outcome: null })
      if (!leave) throw new RelayError('stopping')
      // A response emits `close` after its last byte, or when its client disconnects.
      response.once('close', leave)
      if (guarded && guarded.allow !== 'anyone') {
        await ready()
        exchange.caller = await (guarded.identify?.(exchange, access) ?? access.identify(credentialsOf(request.headers), address))
        exchange.caller.note(address)
      }
      const methods = first?.methods?.(exchange) ?? [...byMethod.keys()]
      if (!route || !methods.includes(context.method)) {
        const allow = methods.join(', ')
        throw new RelayError('method-not-allowed', say('use-methods', { methods }), { headers: { allow } })
      }
      if (route.allow !== 'anyone') exchange.caller.demand(route.allow)
      const result = await route.handle(exchange)
      answer = result === 'sent' || 'body' in result ? result : envelope(result)
    } catch (thrown) {
      error = RelayError.from(thrown)
      const flaw = error.code === 'unauthorized' ? flawOfCredentials(request.headers) : undefined
      if (flaw !== undefined) error = error.with({ said: say('with-flaw', { failure: error.said, flaw }) })
      if (refusalCodes.has(error.code)) exchange.caller.noteRefusal()
      // Unlike `setHeader`, this does nothing once the headers are sent.
      context.set({ ...error.outcome && { 'Relay-Outcome': error.outcome }, ...error.headers })
      answer = route?.fail?.(error, exchange) ?? failure(error)
    }
    if (answer === 'sent') context.respond = false
    else respond(context, { ...answer, body: write(answer.body, exchange.language) })
    if (request.complete) request.resume()
    else discardBody(request)
    observer.answered(path, route?.method, response.statusCode)
    logRequest(options, exchange, { path, route, error, log: answer === 'sent' ? undefined : answer.log, duration: performance.now() - started })
  }
}

/**
 * Waits until the earlier answers of the connection have left. So the requests that a client sends ahead are handled one after the other
 * (RFC 9112, section 9.3.2), and not while answers pile up that it does not read.
 *
 * @returns whether the client is still there
 */
async function takeTurn({ req, res }: Context): Promise<boolean> {
  if (res.socket) return true
  // Node.js would go on to read requests, because only answers that are written make it stop.
  req.socket.pause()
  await new Promise<void>(resolve => {
    res.once('socket', () => resolve())
    // A body that another plugin has read to its end closes its request, too.
    req.once('close', () => req.socket.destroyed && resolve())
  })
  req.socket.resume()
  // Without a socket, an answer would never emit `close`.
  return !!res.socket
}

/** The caller of a request without a key. */
const anonymous = new Caller(null, { allow: new Set() })

function toExchange(context: Context, { prefix, stop, trustedProxies }: RouteOptions): Exchange {
  let gone: AbortSignal | undefined
  let query: URLSearchParams | undefined
  let language: Language | undefined
  const parsed: unknown = Reflect.get(context, isBodyParsed) === true ? context.request.body : undefined
  const unparsed: unknown = typeof parsed === 'object' && parsed !== null ? Reflect.get(parsed, unparsedBody) : parsed
  return {
    id: uuid(),
    request: context.req,
    response: context.res,
    gone: () => gone ??= goneSignal(context.res),
    path: context.path.slice(prefix.length),
    params: context.params,
    get query() {
      if (query) return query
      // The answer to an error of the query may need one, too.
      query = new URLSearchParams()
      // `context.URL` is empty if the Host header is malformed.
      const { querystring } = context
      // Most addresses have none, and making a decoder takes time.
      if (querystring === '') return query
      return query = decodeAddress(context.req, querystring, charset => parsePairs(Buffer.from(querystring), charset))
    },
    get language() {
      return language ??= languageAsked(context.querystring, context.req.headers['accept-language'])
    },
    address: addressOf(context.req, trustedProxies),
    stop,
    body: parsed === undefined ? undefined : Buffer.from(typeof unparsed === 'string' ? unparsed : JSON.stringify(parsed)),
    caller: anonymous,
  }
}

function goneSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  response.once('close', () => {
    if (!response.writableEnded) controller.abort()
  })
  return controller.signal
}

function write(body: PlainAnswer['body'], language: Language): string {
  if (typeof body === 'string') return body
  return body instanceof Text ? body.in(language) : `${JSON.stringify(body, writer(language))}\n`
}

function respond(context: Context, { status, type, body, headers = {} }: PlainAnswer & { body: string }): void {
  context.set(headers)
  context.status = status
  context.type = type
  context.body = body
  const { req, res } = context
  if (res.headersSent) {
    // It is too late for an envelope. Only a broken connection tells the client that the answer is incomplete.
    context.respond = false
    res.destroy()
  } else if (!req.complete && !res.shouldKeepAlive) {
    // Node.js would close the connection after the answer, and a client that is still sending would miss it.
    context.respond = false
    res.write(body)
    req.once('close', () => res.end())
  }
}

/** A JSON answer. */
export function jsonAnswer(status: number, body: object): PlainAnswer {
  return { status, type: 'application/json; charset=utf-8', body }
}

/** The envelope of a success. */
function envelope({ data, status = 200, ...told }: Success): PlainAnswer {
  return { ...jsonAnswer(status, { code: 0, msg: 'ok', data }), ...told }
}

/** The envelope of a failure. */
export function failure(error: RelayError): PlainAnswer {
  return jsonAnswer(error.status, error.envelope)
}

/** The author of a change, for the log. */
export function byCaller({ caller: { name }, address = 'unknown' }: Exchange): Text {
  return name === null ? say('by-master-key', { address }) : say('by-key', { name: JSON.stringify(name), address })
}

/** The data of a log line besides the exchange. */
interface Entry {
  path: string
  /** Absent if the path has no such method. */
  route: Route | undefined
  error: RelayError | undefined
  log: Text | string | undefined
  /** In milliseconds. */
  duration: number
}

/** The codes of failures that only refuse the caller. */
const refusalCodes: ReadonlySet<ErrorCode> = new Set(['unauthorized', 'forbidden', 'rate-limited'])

/** Logs a request: its ID, route, target, key, outcome and duration, but no content of the message. */
function logRequest({ logger, refusals }: RouteOptions, exchange: Exchange, entry: Entry): void {
  const { id, caller, params, address = 'unknown' } = exchange
  const { path, route, error } = entry
  let origin = ''
  // Without a key, any client error counts as a refusal, so that a scan cannot fill the disk.
  if (error && (refusalCodes.has(error.code) || (caller === anonymous && error.status < 500))) {
    refusals.note([path.split('/')[1], params.source].filter(Boolean).join('/'), error.logText)
    const silent = refusals.add(error.code, address)
    if (silent === undefined) return
    origin = `from ${address}${silent > 0 ? ` (and ${silent} more)` : ''}`
  }
  const line = words(describe(exchange, entry, origin, logger.language))
  // Probes and an open console page ask every few seconds and would fill the log. "Not ready" (`unsent`) is a normal answer to a probe;
  // its reason is logged elsewhere. A route with `methods` may have a GET with an effect, which is always logged.
  const isRoutine = route?.quiet
    ? !error || error.code === 'unsent'
    : !error && caller.name === consoleName && route?.method === 'GET' && !route.methods
  logger[isRoutine ? 'debug' : error && error.status >= 500 ? 'warn' : 'info'](line)
  if (error?.code === 'internal' && error.cause !== undefined) logger.warn(words(id), describeError(error.cause))
}

/** @param origin the source of a refused request; otherwise empty */
function describe(exchange: Exchange, { path, error, log = 'ok', duration }: Entry, origin: string, language: Language): string {
  const { id, caller, params, target, ignored, request, response } = exchange
  const result = error ? `${error.status} ${error.code}: ${error.logText.in(language)}` : `${response.statusCode} ${typeof log === 'string' ? log : log.in(language)}`
  const omission = ignored?.length ? ` (ignored: ${ignored.map(name => JSON.stringify(name)).join(', ')})` : ''
  const key = caller.name === null ? '' : `key ${JSON.stringify(caller.name)}`
  // The name of a source, but no other parameter, which may hold a key.
  const where = params.source && /^[\w.-]{1,64}$/.test(params.source) ? path.replace(':source', params.source) : path
  const about = [target, key, origin].filter(Boolean).join(' ') || '-'
  return `${id} ${request.method ?? '-'} ${where} ${about} ${result}${omission} ${duration.toFixed(1)} ms`
}
