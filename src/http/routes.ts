import type { Server } from '@koishijs/plugin-server'
import type { Logger } from 'koishi'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { v7 as uuid } from 'uuid'
import type { Access } from '../access/access'
import type { Caller } from '../access/caller'
import { consoleName } from '../access/keys'
import type { Refusals } from '../access/refusals'
import type { Scope } from '../access/scopes'
import { RelayError, type ErrorCode } from '../errors'
import { gather, turnEnd } from '../lib/gather'
import type { InFlight } from '../lib/in-flight'
import { describeError, printable } from '../lib/log'
import { addressOf, credentialsOf } from './auth'
import { discardBody, type Received } from './body'

/** One request on its way to an answer. */
export interface Exchange extends Received {
  /**
   * A UUIDv7, so that IDs are in the order of time. It links the answer (`X-Request-Id`) to the log, and becomes the ID of the
   * delivery that the request asks for.
   */
  readonly id: string
  readonly response: ServerResponse
  /** The parameters of the path, decoded. */
  readonly params: Readonly<Partial<Record<string, string>>>
  readonly query: URLSearchParams
  /** Who makes it, where the path wants a key. */
  caller?: Caller
  /** For the log: whom the request is about. */
  target?: string
  /** For the log: what came of it; `ok` unless given. */
  outcome?: string
  /** For the log: fields of the body that have no meaning, fit for a line of it. */
  ignored?: readonly string[]
}

/** A request by somebody who may make it. */
export interface AllowedExchange extends Exchange {
  caller: Caller
}

/** `data` of the envelope, and the status, 200 unless given. One from 400 on is that of a request of which only a part succeeded. */
export interface Success {
  data: object
  status?: number
  /** `msg` of the envelope; `ok` unless given. */
  msg?: string
}

/** An answer in the shape that a caller expects who knows nothing of the relay. */
export interface PlainAnswer {
  status: number
  /** Its Content-Type. */
  type: string
  body: string
}

/** A success, an answer in another shape, or `sent` where the handler has answered by itself. */
export type Answer = Success | PlainAnswer | 'sent'

/** One method of one path of the plugin. */
export type Route = OpenRoute | GuardedRoute

interface Endpoint {
  /** In the syntax of Koishi's router, with parameters as `:name`. */
  path: string
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Whether its requests are logged as debug lines only, because monitoring asks every few seconds. */
  quiet?: boolean
  /** Puts a failure into the shape that its callers expect, in the place of the envelope. */
  fail?: (error: RelayError, exchange: Exchange) => PlainAnswer
  /**
   * The methods of an address, where they are not those of the routes of its path with HEAD beside GET, as where a GET does something:
   * a HEAD must do nothing (RFC 9110, section 9.2.1). All routes of a path have the same.
   */
  methods?: (exchange: Exchange) => readonly string[]
}

/** One that answers without a key. */
export interface OpenRoute extends Endpoint {
  allow: 'anyone'
  /** @throws RelayError */
  handle: (exchange: Exchange) => Answer | Promise<Answer>
}

/** One that wants a key. */
export interface GuardedRoute extends Endpoint {
  /** The scopes of which the key must have one. */
  allow: readonly [Scope, ...Scope[]]
  /**
   * Finds out who makes a request, where its callers prove that otherwise than by the headers of the relay.
   *
   * @param addressOf tells where it came from
   * @throws RelayError `unauthorized`
   */
  identify?: (exchange: Exchange, access: Access, addressOf: () => string | undefined) => Caller | Promise<Caller>
  /** @throws RelayError */
  handle: (exchange: AllowedExchange) => Answer | Promise<Answer>
}

/** Is told of each request that was answered: of its route without the prefix, and of its method where that is one of the route's. */
export type RequestObserver = (route: string, method: string | undefined, status: number) => void

/** What all routes share. */
export interface RouteOptions {
  /** Stands before each path. */
  prefix: string
  access: Access
  /** How many proxies a request comes through. */
  trustedProxies: number
  /** Counts the requests that are not answered yet. */
  inFlight: InFlight
  /** Counts what was refused. */
  refusals: Refusals
  observe: RequestObserver
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
    const siblings = routes.filter(route => route.path === path)
    const handler = (context: Context) => answer(context, path, siblings, options)
    // Without this the server would parse and store bodies before the key is checked.
    server.all(options.prefix + path, Object.assign(handler, { [noParseBody]: true }))
  }
}

/** @param siblings the routes of the path, one for each method */
async function answer(context: Context, path: string, siblings: readonly Route[], options: RouteOptions): Promise<void> {
  const started = performance.now()
  const exchange = toExchange(context)
  const methods = methodsOf(siblings, exchange)
  const method = context.method === 'HEAD' && methods.includes('HEAD') ? 'GET' : context.method
  const route = siblings.find(sibling => sibling.method === method)
  const { response } = exchange
  response.setHeader('X-Request-Id', exchange.id)
  // Koa would print a stack for each client that goes away, and its request has a line in the log anyway.
  context.onerror = (failed: Error | null) => {
    if (failed) response.destroy()
  }
  let leave: (() => void) | undefined
  let error: RelayError | undefined
  let plain: PlainAnswer | 'sent'
  try {
    leave = options.inFlight.enter()
    // A response is closed once its last byte or its client has left.
    response.once('close', leave)
    const guarded = [route, ...siblings].find((each): each is GuardedRoute => each !== undefined && each.allow !== 'anyone')
    if (guarded) {
      exchange.caller = await identify(guarded, exchange, options)
      exchange.caller.note(addressOf(context.req, options.trustedProxies))
    }
    if (!route || !methods.includes(context.method)) {
      const allow = methods.join(', ')
      throw new RelayError('method-not-allowed', `use ${allow}`, { headers: { allow } })
    }
    const result = await handle(route, exchange)
    plain = result === 'sent' || 'body' in result ? result : success(result)
  } catch (thrown) {
    error = RelayError.from(thrown)
    if (refusalCodes.has(error.code)) exchange.caller?.noteRefusal()
    // Unlike `setHeader`, this does nothing once the headers are sent.
    if (error.outcome) context.set('Relay-Outcome', error.outcome)
    context.set(error.headers)
    plain = route?.fail?.(error, exchange) ?? failure(error)
  }
  // What was sent is written down before anybody is told; and the next messages leave first, so that the time that the platform takes for
  // them is spent on this answer. Whoever has no key is told nothing of it.
  if (exchange.caller) await turnEnd()
  if (plain === 'sent') context.respond = false
  else respond(context, plain)
  discardBody(exchange.request)
  // When the client goes away, a pipelined response that still waits for the one before it has no socket and is never closed.
  if (!response.socket) leave?.()
  options.observe(path, route?.method, response.statusCode)
  logRequest(options, { exchange, route: route ?? { path }, error, duration: performance.now() - started })
}

/** @param siblings the routes of a path */
function methodsOf(siblings: readonly Route[], exchange: Exchange): readonly string[] {
  return siblings[0]?.methods?.(exchange) ?? siblings.flatMap(({ method }) => method === 'GET' ? ['GET', 'HEAD'] : method)
}

function identify({ identify }: GuardedRoute, exchange: Exchange, { access, trustedProxies }: RouteOptions): Caller | Promise<Caller> {
  const { request } = exchange
  const from = (): string | undefined => addressOf(request, trustedProxies)
  return identify ? identify(exchange, access, from) : access.identify(credentialsOf(request.headers), from)
}

function handle(route: Route, exchange: Exchange): Answer | Promise<Answer> {
  if (route.allow === 'anyone') return route.handle(exchange)
  const { caller } = exchange
  // Where one route of a path wants a key, all do.
  if (!caller) throw new RelayError('internal')
  caller.demand(route.allow)
  return route.handle(Object.assign(exchange, { caller }))
}

function toExchange(context: Context): Exchange {
  const parsed: unknown = Reflect.get(context, isBodyParsed) === true ? context.request.body : undefined
  const unparsed: unknown = typeof parsed === 'object' && parsed !== null ? Reflect.get(parsed, unparsedBody) : undefined
  return {
    id: uuid(),
    request: context.req,
    response: context.res,
    params: context.params,
    // `context.URL` is empty where the Host header is malformed.
    query: new URLSearchParams(context.querystring),
    parsedBody: typeof unparsed === 'string' ? unparsed : parsed,
  }
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

const json = 'application/json; charset=utf-8'

/** The envelope of a success. */
function success({ data, status = 200, msg = 'ok' }: Success): PlainAnswer {
  return { status, type: json, body: JSON.stringify({ code: status < 400 ? 0 : status, msg, data }) }
}

/** The envelope of a failure: `code` equals the HTTP status. */
export function failure({ status, message }: Pick<RelayError, 'status' | 'message'>): PlainAnswer {
  return { status, type: json, body: JSON.stringify({ code: status, msg: message, data: null }) }
}

/** What the log is told of a request. */
interface Entry {
  exchange: Exchange
  route: Pick<Route, 'path'> & Partial<Pick<Route, 'method' | 'methods' | 'quiet'>>
  error: RelayError | undefined
  /** In milliseconds. */
  duration: number
}

/** The failures that say nothing but that the caller may not. */
const refusalCodes: ReadonlySet<ErrorCode> = new Set(['unauthorized', 'forbidden', 'rate-limited'])

/** Logs a request: its ID, route, target, key, outcome and duration. Nothing of what was to be sent is in it. */
function logRequest(options: RouteOptions, entry: Entry): void {
  const { logger } = options
  const { exchange: { id, request }, error } = entry
  const origin = error && refusalCodes.has(error.code) ? describeOrigin(options, request, error.code) : ''
  if (origin === undefined) return
  const line = printable(describe(entry, origin))
  gather(process.stdout)
  if (isRoutine(entry)) logger.debug('%s', line)
  else if (error && error.status >= 500) logger.warn('%s', line)
  else logger.info('%s', line)
  if (error?.code === 'internal' && error.cause !== undefined) logger.warn('%s', `${id} ${describeError(error.cause)}`)
}

/** Whether a request is one of those that come every few seconds and tell nothing: they would fill the log. */
function isRoutine({ exchange: { caller }, route: { method, methods, quiet }, error }: Entry): boolean {
  // A probe that says "not ready" is one of them as well; why it says so is logged elsewhere.
  if (quiet) return !error || error.code === 'unsent'
  // So is an open page in the console, as long as it only reads: a route whose GET does something names its methods.
  return !error && caller?.name === consoleName && method === 'GET' && !methods
}

/** Where a refused request came from, and how many others of the same address have no line; `undefined` when it is to have none either. */
function describeOrigin({ refusals, trustedProxies }: RouteOptions, request: IncomingMessage, reason: ErrorCode): string | undefined {
  const address = addressOf(request, trustedProxies) ?? 'unknown'
  const silent = refusals.add(reason, address)
  if (silent === undefined) return
  return `from ${address}${silent > 0 ? ` (and ${silent} more)` : ''}`
}

/** @param origin where it came from, where that is worth telling */
function describe({ exchange, route, error, duration }: Entry, origin: string): string {
  const { id, caller, target, outcome, ignored = [], request, response } = exchange
  const result = error ? `${error.status} ${error.code}: ${error.logText}` : `${response.statusCode} ${outcome ?? 'ok'}`
  const omission = ignored.length > 0 ? ` (ignored: ${ignored.map(name => JSON.stringify(name)).join(', ')})` : ''
  const key = caller && caller.name !== null ? `key ${JSON.stringify(caller.name)}` : ''
  const about = [target, key, origin].filter(Boolean).join(' ') || '-'
  return `${id} ${request.method ?? '-'} ${route.path} ${about} ${result}${omission} ${duration.toFixed(1)} ms`
}
