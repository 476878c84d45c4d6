import type { Server } from '@koishijs/plugin-server'
import type { Logger } from 'koishi'
import type { ServerResponse } from 'node:http'
import { v7 as uuid } from 'uuid'
import type { Access } from '../access/access'
import { Caller } from '../access/caller'
import { consoleName } from '../access/keys'
import { addressOf, credentialsOf } from '../access/origin'
import type { Refusals } from '../access/refusals'
import type { Scope } from '../access/scopes'
import { RelayError, type ErrorCode } from '../errors'
import type { InFlight } from '../lib/async'
import { describeError, printable } from '../lib/log'
import { discardBody, type Received } from './body'

/** One request on its way to an answer. */
export interface Exchange extends Received {
  /**
   * A UUIDv7, so that IDs are in the order of time. It links the answer (`X-Request-Id`) to the log, and becomes the ID of the
   * delivery that the request asks for.
   */
  readonly id: string
  readonly response: ServerResponse
  /** A signal that is aborted when the client disconnects before it has its answer. */
  readonly gone: () => AbortSignal
  /** The parameters of the path, decoded. */
  readonly params: Readonly<Partial<Record<string, string>>>
  readonly query: URLSearchParams
  /** The address of the caller; `undefined` where it is unknown. */
  readonly address: string | undefined
  /** Who makes the request. It has no rights where the path wants no key, and until the key was checked. */
  caller: Caller
  /** For the log: the target of the request. */
  target?: string
  /** For the log: the result; `ok` unless given. */
  outcome?: string
  /** For the log: fields of the body without a meaning, fit for a line. */
  ignored?: readonly string[]
}

/** `data` of the envelope, and the status, 200 unless given. One from 400 on is that of a request of which only a part succeeded. */
export interface Success {
  data: object
  status?: number
  /** `msg` of the envelope; `ok` unless given. */
  msg?: string
  /** For the log: what it has changed. */
  change?: string
}

/** An answer in another shape than the envelope, for callers that know nothing of the relay. */
export interface PlainAnswer {
  status: number
  /** Its Content-Type. */
  type: string
  body: string
}

/** A success, an answer in another shape, or `sent` where the handler has answered by itself. */
export type Answer = Success | PlainAnswer | 'sent'

/** One method of one path of the plugin. */
export interface Route {
  /** In the syntax of Koishi's router, with parameters as `:name`. */
  path: string
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** The scopes of which the key must have one. Where one route of a path wants no key, none of them does. */
  allow: 'anyone' | readonly [Scope, ...Scope[]]
  /** Whether its requests are logged as debug lines only, because monitoring asks every few seconds. */
  quiet?: boolean
  /** @throws RelayError */
  handle: (exchange: Exchange) => Answer | Promise<Answer>
  /**
   * Finds out who makes a request, where callers authenticate otherwise than by the headers of the relay. All routes of a path have the
   * same.
   *
   * @throws RelayError `unauthorized`
   */
  identify?: (exchange: Exchange, access: Access) => Caller | Promise<Caller>
  /** Puts a failure into the shape that its callers expect, instead of the envelope. */
  fail?: (error: RelayError, exchange: Exchange) => PlainAnswer
  /**
   * The methods of an address, where they are not those of the routes of its path with HEAD beside GET. An address whose GET has an effect
   * has no HEAD, which must have none (RFC 9110, section 9.2.1). All routes of a path have the same.
   */
  methods?: (exchange: Exchange) => readonly string[]
}

/** Makes a route whose callers authenticate with a key of the relay and are answered in the envelope. */
export function route(
  method: Route['method'], path: string, allow: Route['allow'], handle: Route['handle'], further: Pick<Route, 'quiet'> = {},
): Route {
  return { method, path, allow, handle, ...further }
}

/** Is told of each request that was answered. */
export interface RequestObserver {
  /**
   * @param route its path without the prefix
   * @param method `undefined` where the route has no such method
   */
  answered: (route: string, method: string | undefined, status: number) => void
}

/** What all routes share. */
export interface RouteOptions {
  /** Stands before each path. */
  prefix: string
  access: Access
  /** How many proxies a request comes through. */
  trustedProxies: number
  /** Aborted when the relay stops. */
  stop: AbortSignal
  /** Counts the requests that are not answered yet. */
  inFlight: InFlight
  /** Counts the refused requests. */
  refusals: Refusals
  observer: RequestObserver
  logger: Logger
}

type Context = Parameters<Parameters<Server['all']>[1]>[0]

// How the server of a bot is told not to read a body, and tells that it has: as in @cordisjs/plugin-server 0.2.9 and koa-body 6.0.1.
const noParseBody = Symbol.for('noParseBody')
const isBodyParsed = Symbol.for('isBodyParsed')
const unparsedBody = Symbol.for('unparsedBody')

/**
 * Registers routes on the server of the bot; they go when the plugin is disposed. Each request is authorized, answered in the
 * envelope `{code, msg, data}` and logged here.
 */
export function registerRoutes(server: Server, routes: readonly Route[], options: RouteOptions): void {
  for (const path of new Set(routes.map(route => route.path))) {
    // Logs and metrics have a parameter that may be left out as any other.
    const handler = handlerOf(path.replace('?', ''), routes.filter(route => route.path === path), options)
    // Without this the server would parse and store bodies before the key is checked.
    server.all(options.prefix + path, Object.assign(handler, { [noParseBody]: true }))
  }
}

/** @param routes those of the path, one for each method; either all of them want a key, or none does */
function handlerOf(path: string, routes: readonly Route[], options: RouteOptions): (context: Context) => Promise<void> {
  const { access, inFlight, observer } = options
  const [first] = routes
  const byMethod = new Map(routes.flatMap(route => {
    const methods = route.method === 'GET' && !route.methods ? ['GET', 'HEAD'] : [route.method]
    return methods.map(method => [method, route])
  }))

  return async context => {
    const started = performance.now()
    const exchange = toExchange(context, options)
    const { request, response, address } = exchange
    const route = byMethod.get(context.method)
    const guarded = route ?? first
    let leave: (() => void) | undefined
    let error: RelayError | undefined
    let answer: PlainAnswer | 'sent'
    response.setHeader('X-Request-Id', exchange.id)
    // Koa would print a stack for each client that goes away, and the request has a line in the log anyway.
    context.onerror = (failed: Error | null) => {
      if (failed) response.destroy()
    }
    try {
      leave = inFlight.tryToEnter()
      // A first request with this key may still be leaving.
      if (!leave && 'idempotency-key' in request.headers) throw new RelayError('key-unknown', 'the relay is stopping: try again later')
      if (!leave) throw new RelayError('stopping')
      // A response is closed once its last byte or its client has left.
      response.once('close', leave)
      if (guarded && guarded.allow !== 'anyone') {
        exchange.caller = await (guarded.identify?.(exchange, access) ?? access.identify(credentialsOf(request.headers), address))
        exchange.caller.note(address)
      }
      const methods = first?.methods?.(exchange) ?? [...byMethod.keys()]
      if (!route || !methods.includes(context.method)) {
        const allow = methods.join(', ')
        throw new RelayError('method-not-allowed', `use ${allow}`, { headers: { allow } })
      }
      if (route.allow !== 'anyone') exchange.caller.demand(route.allow)
      const result = await route.handle(exchange)
      if (result !== 'sent' && 'change' in result) exchange.outcome = `${result.change} (by ${authorOf(exchange)})`
      answer = result === 'sent' || 'body' in result ? result : envelope(result)
    } catch (thrown) {
      error = RelayError.from(thrown)
      if (refusalCodes.has(error.code)) exchange.caller.noteRefusal()
      // Unlike `setHeader`, this does nothing once the headers are sent.
      if (error.outcome) context.set('Relay-Outcome', error.outcome)
      context.set(error.headers)
      answer = route?.fail?.(error, exchange) ?? failure(error)
    }
    if (answer === 'sent') context.respond = false
    else respond(context, answer)
    if (request.complete) request.resume()
    else discardBody(request)
    // When the client goes away, a pipelined response that still waits for the one before it has no socket and is never closed.
    if (!response.socket) leave?.()
    observer.answered(path, route?.method, response.statusCode)
    logRequest(options, exchange, { path, route, error, duration: performance.now() - started })
  }
}

/** The caller of a request without a key. */
const stranger = new Caller(null, { allow: new Set() })

function toExchange(context: Context, { stop, trustedProxies }: RouteOptions): Exchange {
  let gone: AbortSignal | undefined
  const parsed: unknown = Reflect.get(context, isBodyParsed) === true ? context.request.body : undefined
  const unparsed: unknown = typeof parsed === 'object' && parsed !== null ? Reflect.get(parsed, unparsedBody) : parsed
  return {
    id: uuid(),
    request: context.req,
    response: context.res,
    gone: () => gone ??= goneSignal(context.res),
    params: context.params,
    // `context.URL` is empty where the Host header is malformed.
    query: new URLSearchParams(context.querystring),
    address: addressOf(context.req, trustedProxies),
    stop,
    parsedBody: typeof unparsed === 'string' ? unparsed : parsed === undefined ? undefined : JSON.stringify(parsed),
    caller: stranger,
  }
}

function goneSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  response.once('close', () => {
    if (!response.writableEnded) controller.abort()
  })
  return controller.signal
}

function respond(context: Context, { status, type, body }: PlainAnswer): void {
  context.status = status
  context.type = type
  context.body = body
  const { req, res } = context
  if (res.headersSent) {
    // It is too late for an envelope. Only a broken connection tells the client that something is missing.
    context.respond = false
    res.destroy()
  } else if (!req.complete && !res.shouldKeepAlive) {
    // Node.js would close the connection after the answer, and a client that is still sending would not see the answer.
    context.respond = false
    res.write(body)
    req.once('close', () => res.end())
  }
}

/** A JSON answer. It ends with a line end, for terminals and programs that read by lines. */
export function jsonAnswer(status: number, body: object): PlainAnswer {
  return { status, type: 'application/json; charset=utf-8', body: `${JSON.stringify(body)}\n` }
}

/** The envelope of a success; of a failure, `code` equals the HTTP status. */
function envelope({ data, status = 200, msg = 'ok' }: { data: object | null, status?: number, msg?: string }): PlainAnswer {
  return jsonAnswer(status, { code: status < 400 ? 0 : status, msg, data })
}

/** The envelope of a failure. */
export function failure({ status, message, data }: Pick<RelayError, 'status' | 'message'> & { data?: object | null }): PlainAnswer {
  return envelope({ status, msg: message, data: data ?? null })
}

/** Who has changed something, for the log. */
function authorOf({ caller: { name }, address = 'unknown' }: Exchange): string {
  return `${name === null ? 'the master key' : `the key ${JSON.stringify(name)}`} from ${address}`
}

/** What the log is told of a request beside its exchange. */
interface Entry {
  path: string
  /** Absent where the path has no such method. */
  route: Route | undefined
  error: RelayError | undefined
  /** In milliseconds. */
  duration: number
}

/** The failures that say nothing but that the caller may not. */
const refusalCodes: ReadonlySet<ErrorCode> = new Set(['unauthorized', 'forbidden', 'rate-limited'])

/** Logs a request: its ID, route, target, key, outcome and duration, and nothing of the message. */
function logRequest({ logger, refusals }: RouteOptions, exchange: Exchange, entry: Entry): void {
  const { id, caller, params, address = 'unknown' } = exchange
  const { path, route, error } = entry
  let origin = ''
  // Of a stranger any failure counts: a scan must not fill the disk.
  if (error && (refusalCodes.has(error.code) || (caller === stranger && error.status < 500))) {
    refusals.note([path.split('/')[1], params.source].filter(Boolean).join('/'), error.logText)
    const silent = refusals.add(error.code, address)
    if (silent === undefined) return
    origin = `from ${address}${silent > 0 ? ` (and ${silent} more)` : ''}`
  }
  const line = printable(describe(exchange, entry, origin))
  // Probes and an open page in the console ask every few seconds: they would fill the log. "Not ready" is an answer to a probe; why it is
  // not ready is logged elsewhere. A route whose GET has an effect names its methods.
  const isRoutine = route?.quiet
    ? !error || error.code === 'unsent'
    : !error && caller.name === consoleName && route?.method === 'GET' && !route.methods
  logger[isRoutine ? 'debug' : error && error.status >= 500 ? 'warn' : 'info']('%s', line)
  if (error?.code === 'internal' && error.cause !== undefined) logger.warn('%s', `${id} ${describeError(error.cause)}`)
}

/** @param origin where the request came from, where that is worth telling */
function describe(exchange: Exchange, { path, error, duration }: Entry, origin: string): string {
  const { id, caller, target, outcome, ignored, request, response } = exchange
  const result = error ? `${error.status} ${error.code}: ${error.logText}` : `${response.statusCode} ${outcome ?? 'ok'}`
  const omission = ignored?.length ? ` (ignored: ${ignored.map(name => JSON.stringify(name)).join(', ')})` : ''
  const key = caller.name === null ? '' : `key ${JSON.stringify(caller.name)}`
  const about = [target, key, origin].filter(Boolean).join(' ') || '-'
  return `${id} ${request.method ?? '-'} ${path} ${about} ${result}${omission} ${duration.toFixed(1)} ms`
}
