import type { Server } from '@koishijs/plugin-server'
import type { Logger } from 'koishi'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { v7 as uuid } from 'uuid'
import { RelayError } from '../errors'
import type { Gate } from '../lib/in-flight'
import { discardBody } from './body'
import { failure, success } from './envelope'
import { logRequest } from './journal'

/** One request on its way to an answer. */
export interface Exchange {
  /** Links the answer (`X-Request-Id`) to the log, and is the ID of the delivery that it begins. In the order of time. */
  readonly id: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The parameters of the path, decoded. */
  readonly params: Readonly<Partial<Record<string, string>>>
  readonly query: URLSearchParams
  /** The body, where another plugin of the bot has read it already. */
  readonly parsedBody: unknown
  /** For the log line: whom the request is about, and what came of it. */
  target?: string
  outcome?: string
}

/** A success: `data` of the envelope, or bytes that the handler has sent itself. */
export type Answer = { data: object, status?: number } | 'sent'

/** One method of one path of the plugin. */
export interface Route {
  /** In the syntax of the router. */
  path: string
  method: 'GET' | 'POST' | 'DELETE'
  /** Whether it answers without the API key. */
  open?: boolean
  /** Whether its requests are logged only when one looks for trouble: probes come every few seconds. */
  quiet?: boolean
  /** @throws RelayError */
  handle: (exchange: Exchange) => Answer | Promise<Answer>
}

/** What all routes share. */
export interface RouteOptions {
  prefix: string
  isAuthorized: (headers: IncomingMessage['headers']) => boolean
  gate: Gate
  logger: Logger
}

type Context = Parameters<Parameters<Server['all']>[1]>[0]

const noParseBody = Symbol.for('noParseBody')
const isBodyParsed = Symbol.for('isBodyParsed')
const unparsedBody = Symbol.for('unparsedBody')

/** Registers the routes on the bot's server; they go when the plugin is disposed. */
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
  const method = context.method === 'HEAD' ? 'GET' : context.method
  const route = siblings.find(sibling => sibling.method === method)
  const started = performance.now()
  const exchange = toExchange(context)
  const { response } = exchange
  response.setHeader('X-Request-Id', exchange.id)
  // Koa would print a stack for each client that goes away; its request has a line in the log.
  context.onerror = (failed: Error | null) => {
    if (failed) response.destroy()
  }
  let leave: (() => void) | undefined
  let error: RelayError | undefined
  try {
    leave = options.gate.enter()
    // A response is closed once its last byte has left, or its client.
    response.once('close', leave)
    if (!siblings.every(({ open }) => open) && !options.isAuthorized(context.headers)) {
      throw new RelayError('unauthorized', undefined, { headers: { 'www-authenticate': 'Bearer' } })
    }
    if (!route) {
      const allow = siblings.map(sibling => sibling.method === 'GET' ? 'GET, HEAD' : sibling.method).join(', ')
      throw new RelayError('method-not-allowed', `use ${allow}`, { headers: { allow } })
    }
    const result = await route.handle(exchange)
    if (result === 'sent') context.respond = false
    else respond(context, result.status ?? 200, success(result.data))
  } catch (thrown) {
    error = RelayError.from(thrown)
    // Unlike `setHeader`, it does nothing once the headers are sent.
    if (error.outcome) context.set('Relay-Outcome', error.outcome)
    context.set(error.headers)
    respond(context, error.status, failure(error))
  }
  discardBody(exchange.request)
  // A pipelined response that still waits for the one before it is never closed when the client goes away.
  if (!response.socket) leave?.()
  logRequest(options.logger, exchange, route ?? { path }, error, performance.now() - started)
}

function toExchange(context: Context): Exchange {
  const parsed: unknown = Reflect.get(context, isBodyParsed) === true ? context.request.body : undefined
  const unparsed: unknown = typeof parsed === 'object' && parsed !== null ? Reflect.get(parsed, unparsedBody) : undefined
  return {
    id: uuid(),
    request: context.req,
    response: context.res,
    params: context.params,
    // Not `context.URL`, which is no URL where the Host header is wrong.
    query: new URLSearchParams(context.querystring),
    parsedBody: typeof unparsed === 'string' ? unparsed : parsed,
  }
}

function respond(context: Context, status: number, body: string): void {
  context.status = status
  context.type = 'application/json; charset=utf-8'
  context.body = body
  const { req, res } = context
  if (res.headersSent) {
    // Too late for an envelope: only a broken connection tells the client that something is missing.
    context.respond = false
    res.destroy()
  } else if (!req.complete && !res.shouldKeepAlive) {
    // Node.js would close the connection after the answer, and a client that is still sending would never see it.
    context.respond = false
    res.write(body)
    req.once('close', () => res.end())
  }
}
