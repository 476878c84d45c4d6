import type { Logger } from 'koishi'
import type { Caller } from '../access/caller'
import { RelayError, type ErrorCode } from '../errors'
import { readBody, type BodyLimits } from '../http/body'
import { itemsOfText } from '../http/long-text'
import { parseConduct, readExpiry, type Expiry } from '../http/preferences'
import { failure, type AllowedExchange, type Answer, type Exchange, type GuardedRoute, type PlainAnswer, type Success } from '../http/routes'
import type { Sender } from '../http/sender'
import type { Language } from '../lib/language'
import { printable } from '../lib/log'
import { parsePath } from '../message/destination'
import type { Destinations, TargetNames } from '../message/model'
import { RequestFiles } from '../uploads/request-files'
import type { UploadStore } from '../uploads/store'
import { parseHook, receiveHook } from './body'
import { hookCredentialsOf } from './credentials'
import { whyFilteredOut } from './filter'
import { payloadRoute, type LastPayloads } from './payloads'
import { renderPlainly, tidy } from './plain'
import type { EventKey, HookEvent, HookRequest, SignedRequest, Source } from './source'
import { sources } from './sources'
import { reasonOf, type Rendered, type Templates } from './templates'
import { UnprovenBodies } from './unproven'

/** What the routes need of the rest of the plugin. */
export interface HookOptions {
  sender: Sender
  templates: Templates
  /** Takes what came last, for whoever wants to try a template. */
  payloads: LastPayloads
  uploads: UploadStore
  /** Those that may stand for targets. */
  names: TargetNames
  limits: BodyLimits
  /** The language that the bot speaks, where an address asks for none. */
  language: Language
  logger: Logger
  /** Aborted when the relay stops. */
  stop: AbortSignal
}

/** How long a sender waits for the result where nothing is stored, in milliseconds. Some give a second in all. */
const patience = 800
/** When a sender may come again with what could not be accepted, in seconds. */
const retryAfter = 30

/** What could not be accepted now, and may be later. Many senders come again after nothing but a 5xx. */
const temporary: ReadonlySet<ErrorCode> = new Set(['queue-full', 'rate-limited', 'in-progress', 'no-database'])

const path = '/hooks/:source/:targets'

const known: ReadonlyMap<string, Source> = new Map(sources.map(source => [source.name, source]))

/**
 * `POST` and `GET /hooks/<source>/<target>[,<target>…]`: takes what other systems post by themselves. `GET /payloads/<source>`: what came
 * last.
 */
export function hookRoutes(options: HookOptions): GuardedRoute[] {
  const hooks = new Hooks(options)
  const taking = (['GET', 'POST'] as const).map((method): GuardedRoute => ({
    path,
    method,
    allow: ['hooks'],
    identify: (exchange, access, addressOf) => hooks.identify(exchange, access, addressOf),
    handle: exchange => hooks.handle(exchange),
    fail: (error, exchange) => hooks.fail(error, exchange),
    // Of a name that is none of them, it is not known yet.
    methods: ({ params: { source = '' } }) => known.has(source) && !known.get(source)?.takesGet ? ['POST'] : ['GET', 'POST'],
  }))
  return [...taking, payloadRoute(options.payloads)]
}

class Hooks {
  private readonly unproven = new UnprovenBodies()
  /** What was received already to find out who makes a request. */
  private readonly received = new WeakMap<Exchange, SignedRequest>()

  constructor(private readonly options: HookOptions) {}

  /** A key comes first: Sentry signs with a secret of its own, whatever its address has. */
  async identify(exchange: Exchange, ...[access, addressOf]: Identification): Promise<Caller> {
    const { request, query } = exchange
    const source = known.get(exchange.params.source ?? '')
    const given = hookCredentialsOf(request.headers, query, source?.keyHeader)
    if (request.method !== 'POST' || !source?.isSigned?.(request)) return access.identify(given, addressOf)
    try {
      if (given.length > 0) return access.identify(given, addressOf)
    } catch (error) {
      if (!(error instanceof RelayError && error.code === 'unauthorized')) throw error
    }
    const { limits, stop } = this.options
    const received = await receiveHook(exchange, () => this.unproven.read(request, limits, stop))
    this.received.set(exchange, received)
    return access.verify(secret => source.verify?.(received, secret) ?? false, addressOf)
  }

  async handle(exchange: AllowedExchange): Promise<Answer> {
    try {
      const source = await this.find(exchange)
      const answer = await this.take(exchange, source)
      const { status = 200, msg = 'ok' } = answer
      if (status === 503) exchange.response.setHeader('Retry-After', retryAfter)
      if (!source.shape || 'dry_run' in answer.data) return answer
      return status < 400 ? source.shape.success(exchange.query) : source.shape.failure({ status, message: msg, headers: {} })
    } catch (thrown) {
      const error = RelayError.from(thrown)
      if (!temporary.has(error.code)) throw error
      throw new RelayError(error.code, error.message, { cause: error.cause, headers: error.headers, logText: error.logText, status: 503 })
    }
  }

  /** Puts a failure into the shape that its callers expect. */
  fail(error: RelayError, { params, response }: Exchange): PlainAnswer {
    const { status, message, headers } = error
    const { 'retry-after': given = String(retryAfter) } = headers
    if (status === 503) response.setHeader('Retry-After', given)
    const shape = known.get(params.source ?? '')?.shape
    if (!shape) return failure(error)
    return shape.failure({ status, message, headers: status === 503 ? { ...headers, 'retry-after': given } : headers })
  }

  private async take(exchange: AllowedExchange, source: Source): Promise<Success> {
    const { params, query, caller } = exchange
    const { sender, names, payloads } = this.options
    const destinations = parsePath(params.targets ?? '', {}, names)
    sender.demandTargets(exchange, destinations)
    const expiry = readExpiry(query)
    const language = readLanguage(query.get('lang')) ?? this.options.language
    const hook = await this.readHook(exchange, source)
    const kept = parseConduct(query).isDry ? undefined : payloads.keep(source.name, caller.name, hook)
    const reading = source.read(hook)
    if (kept && 'name' in reading) kept.event = reading.name
    const why = 'skipped' in reading ? reading.skipped : whyFilteredOut(reading, query)
    if (why !== undefined || 'skipped' in reading) return skip(exchange, why ?? '')
    const { text, pictures } = await this.render(exchange.id, source, reading, language)
    if (text === '' && pictures.length === 0) return skip(exchange, 'its template gives no text')
    return this.send(exchange, { text, pictures, destinations, expiry, door: `hooks/${source.name}`, key: keyFor(exchange, source, hook) })
  }

  private async send(exchange: AllowedExchange, { text, pictures, destinations, expiry, door, key }: Message): Promise<Success> {
    const { sender, uploads } = this.options
    const files = new RequestFiles(uploads)
    try {
      const words = text === '' ? [] : await itemsOfText(text, files)
      const items = [...words, ...pictures.map(link => ({ type: 'image' as const, link }))]
      const order = {
        door,
        content: { mode: items.length === 1 ? 'single' as const : 'batch' as const, items, ...expiry },
        destinations,
        files,
        deferred: { wait: 0, inMemory: patience },
        tellsState: true,
        ...key && { key: key.text, event: { ...key.lifetime !== undefined && { lifetime: key.lifetime } } },
      }
      sender.admit(exchange, order)
      return await sender.send(exchange, order)
    } finally {
      await files.end()
    }
  }

  /** @throws RelayError `not-found`, `method-not-allowed` */
  private async find({ params, request }: Exchange): Promise<Source> {
    const { source: name = '' } = params
    const source = known.get(name)
    if (source) return source
    if (!await this.options.templates.has(name)) throw unknownSource()
    if (request.method !== 'POST') throw new RelayError('method-not-allowed', 'use POST', { headers: { allow: 'POST' } })
    return ownSource(name)
  }

  private async readHook(exchange: Exchange, source: Source): Promise<HookRequest> {
    const { limits, stop } = this.options
    const received = this.received.get(exchange)
    // What was posted is many times as large as the message that it becomes, and need not be there until that is sent.
    this.received.delete(exchange)
    return parseHook(exchange, received ?? await receiveHook(exchange, () => readBody(exchange.request, limits, stop)), source)
  }

  /** Makes the text of an event. Where its template fails, its main fields are better than nothing. */
  private async render(id: string, source: Source, { view }: HookEvent, language: Language): Promise<Rendered> {
    const { templates, logger } = this.options
    try {
      const { text, pictures } = await templates.render(source.name, view, language)
      return { text: tidy(text), pictures }
    } catch (error) {
      logger.warn('%s', printable(`${id} the template of ${JSON.stringify(source.name)} failed, and a plain text is sent: ${reasonOf(error)}`))
      return { text: tidy(renderPlainly(view)), pictures: [] }
    }
  }
}

type Identification = Parameters<NonNullable<GuardedRoute['identify']>> extends [unknown, ...infer Rest] ? Rest : never

/** What an event has become. */
interface Message extends Rendered {
  door: string
  destinations: Destinations
  expiry: Expiry
  key: EventKey | undefined
}

/** A source that is nothing but a template of the operator. */
function ownSource(name: string): Source {
  return { name, read: ({ payload }) => ({ name, view: payload }) }
}

function skip(exchange: Exchange, why: string): Success {
  exchange.outcome = `skipped: ${why}`
  return { data: { skipped: why } }
}

/** No two addresses have an event in common. Where a request came from and its key are no part of what it tells. */
function keyFor({ params, query }: Exchange, source: Source, hook: HookRequest): EventKey | undefined {
  const key = source.keyOf?.(hook)
  if (!key) return
  const parameters = [...query].filter(([name]) => name !== 'key' && name !== 'access_token')
  return { ...key, text: JSON.stringify([source.name, params.targets, parameters, key.text]) }
}

function unknownSource(): RelayError {
  const list = sources.map(({ name }) => name).join(', ')
  return new RelayError('not-found', `no such source: the address is /hooks/<source>/<target>, with one of ${list}, or the name of a template`, {
    logText: 'no such source',
  })
}

/** @throws RelayError `bad-request` */
function readLanguage(text: string | null): Language | undefined {
  if (text === null || text === '') return
  if (text === 'zh-CN' || text === 'en-US') return text
  throw new RelayError('bad-request', 'lang must be zh-CN or en-US')
}
