import type { Access } from '../access/access'
import type { Caller } from '../access/caller'
import type { Refusals } from '../access/refusals'
import { RelayError, type ErrorCode } from '../errors'
import { hasBody, readBody, type BodyLimits } from '../http/body'
import { parseHandling, readTiming, type Timing } from '../http/preferences'
import { failure, type Answer, type Exchange, type PlainAnswer, type Route, type Success } from '../http/routes'
import type { Order, Sender } from '../http/sender'
import { languageNamed, languages, type Language } from '../texts/language'
import { isText, say, words, type Text } from '../texts/text'
import { either, matchesGlob, readList, readValue } from '../lib/words'
import type { Log } from '../lib/log'
import { parseDestinations } from '../message/target'
import type { Content, Destinations, Item, Severity, TargetNames } from '../message/model'
import { isKeyField, pattern, readAddress, textsInPath, type HookAddress } from './address'
import { hookCredentialsOf, keysInBody, parseHook } from './body'
import { digestTemplate } from './digest'
import type { LastPayloads } from './payloads'
import { readerOf } from './markup'
import { severityOfWord } from './marks'
import { renderPlainly, tidy } from './plain'
import type { Sources } from './registry'
import type { Asked } from './shapes'
import { genericSource, ownSource } from './generic'
import { severityOf, started, type EventKey, type HookEvent, type HookRequest, type Reading, type Source } from './source'
import { templateRoutes } from './template-routes'
import { namePattern, nameRule, reasonOf, type Templates } from './templates'
import { UnprovenBodies } from './unproven'

/** The parts of the plugin that the routes need. */
export interface HookOptions {
  access: Access
  refusals: Refusals
  sender: Sender
  sources: Sources
  templates: Templates
  /** The last payload of each source, to try templates with. */
  payloads: LastPayloads
  /** The names of targets. */
  names: TargetNames
  limits: BodyLimits
  /** The language of messages if neither the address nor the target has one. */
  language: Language
  logger: Pick<Log, 'warn'>
}

/** When a sender may repeat a refused request, in seconds. */
const retryAfter = '30'

/** Temporary failures. They are answered with 503, because many senders retry only after a 5xx. */
const temporary: ReadonlySet<ErrorCode> = new Set(['queue-full', 'rate-limited', 'in-progress', 'storage-full'])

/**
 * `POST`, `PUT` and `GET /hooks/<source>/<target>[,<target>…]`: accept the webhooks of other systems. `GET /payloads`: the last payloads.
 * Also the routes of templates.
 */
export function hookRoutes(options: HookOptions): Route[] {
  const hooks = new Hooks(options)
  const { sources } = options
  const receivers = (['GET', 'POST', 'PUT'] as const).map((method): Route => ({
    path: '/hooks/:source/:targets',
    pattern,
    method,
    allow: ['hooks'],
    identify: (exchange, access) => hooks.identify(exchange, access),
    handle: exchange => hooks.handle(exchange),
    fail: (error, exchange) => hooks.fail(error, exchange),
    // Whether the operator has a template of this name is known only later.
    methods: ({ params: { source = '' } }) => (sources.get(source) ?? { acceptsGet: true }).acceptsGet ? ['GET', 'POST', 'PUT'] : ['POST', 'PUT'],
  }))
  return [...receivers, ...options.payloads.routes(), ...templateRoutes(options, name => sources.get(name) ?? ownSource(name))]
}

class Hooks {
  private readonly unproven = new UnprovenBodies()

  constructor(private readonly options: HookOptions) {}

  /** Tries the keys before the signature, because Sentry always signs, with a secret of its own. */
  async identify(exchange: Exchange, access: Access): Promise<Caller> {
    const { request, address } = exchange
    const asked = readAddress(exchange, this.options.sources)
    const { door, source } = asked
    const given = hookCredentialsOf(exchange, asked)
    const isSigned = request.method !== 'GET' && source?.isSigned?.(request) === true
    try {
      return identifyBy(access, given, exchange, source)
    } catch (error) {
      const mayHaveKey = request.method !== 'GET' && door?.takesTail === true && hasBody(exchange)
      if (!(error instanceof RelayError && error.code === 'unauthorized' && source && (isSigned || mayHaveKey))) throw error
    }
    const raw = await this.unproven.read(exchange, this.options.limits)
    exchange.body = raw
    if (!isSigned) return identifyBy(access, [...given, ...await keysInBody(exchange, raw, source)], exchange, source)
    try {
      return access.verify(secret => source.verify?.({ headers: request.headers, raw }, secret) ?? false, address)
    } catch (error) {
      throw given.length > 0 && error instanceof RelayError ? error.with({ said: say('no-such-key-or-secret') }) : error
    }
  }

  async handle(exchange: Exchange): Promise<Answer> {
    try {
      exchange.caller.demandSource(exchange.params.source ?? '')
      const address = readAddress(exchange, this.options.sources)
      const source = await this.find(exchange, address)
      const [answer, asked] = await this.accept(exchange, address, source)
      const { skipped }: { skipped?: unknown } = answer.data
      const why = typeof skipped === 'string' ? words(skipped) : isText(skipped) ? skipped : undefined
      this.options.refusals.accept(`hooks/${exchange.params.source ?? ''}`, why)
      if (!source.shape || 'dry_run' in answer.data) return answer
      return { ...source.shape.success(asked, answer.data), log: answer.log, headers: answer.headers }
    } catch (thrown) {
      const error = RelayError.from(thrown)
      throw temporary.has(error.code) ? error.with({ status: 503 }) : error
    }
  }

  /** Answers a failure in the shape that the callers of the source expect. */
  fail(thrown: RelayError, exchange: Exchange): PlainAnswer {
    const error = thrown.status === 503 ? thrown.with({ headers: { 'retry-after': retryAfter, ...thrown.headers } }) : thrown
    const answer = readAddress(exchange, this.options.sources).source?.shape?.failure(error) ?? failure(error)
    return { ...answer, headers: error.headers }
  }

  private async accept(exchange: Exchange, address: HookAddress, source: Source): Promise<[Success, Asked]> {
    const { query } = exchange
    const { access, sender, names, limits } = this.options
    const texts = textsInPath(address, text => access.knows(text))
    const targets = exchange.params.targets ?? await this.topicOf(exchange, source)
    const destinations = parseDestinations(targets, {}, names)
    sender.demandTargets(exchange, destinations)
    const raw = await readBody(exchange, limits)
    // Frees the body before the message is sent, because it is many times as large.
    exchange.body = undefined
    const hook = await parseHook(exchange, raw, source, texts)
    const asked = { query, targets, tail: address.tail, chat: hook.payload.chat_id }
    return [await this.submit(exchange, source, hook, { targets, destinations }), asked]
  }

  private async submit(
    exchange: Exchange, source: Source, hook: HookRequest, { targets, destinations }: { targets: string, destinations: Destinations },
  ): Promise<Success> {
    const { query, caller } = exchange
    const { sender, payloads } = this.options
    const handling = parseHandling({}, query)
    const { thread, stated, ...timing } = readEventTiming(query)
    const asked = readValue('lang', query.get('lang'), languageNamed, either(...languages))
    const localized = destinations.list.map(each => ({ ...each, lang: asked ?? each.lang ?? this.options.language }))
    let event: string | undefined
    let reading: Reading
    try {
      reading = source.read(hook)
      if (!('skipped' in reading)) event = reading.name
    } finally {
      if (!handling.isDry) payloads.keep(source.name, hook, { caller: caller.name, event })
    }
    if ('skipped' in reading) return skip(reading.skipped)
    const why = whyFilteredOut(reading, query)
    if (why !== undefined) return skip(why)
    const translations = new Map<Language, Content>()
    for (const lang of new Set(localized.map(each => each.lang))) {
      const { items, severity = severityOf(reading) } = await this.render(exchange.id, source, reading, lang)
      const mode = items.length === 1 ? 'single' : 'batch'
      if (items.length === 0) continue
      // The address cannot say of an end that it is none.
      const event = { severity: severity === 'ok' ? severity : stated ?? severity, begunAt: reading.begunAt }
      translations.set(lang, { mode, items, longText: 'file', ...event, ...timing, ...threadOf(thread, source, reading) })
    }
    const [content] = translations.values()
    if (!content) return skip(say('template-gives-no-text'))
    const key = keyFor(query, targets, source, hook)
    // A template may produce text in only some of the languages.
    const list = localized.filter(({ lang }) => translations.has(lang))
    const order: Order = {
      ...handling, content, translations, destinations: { ...destinations, list }, door: `hooks/${source.name}`,
      deferred: { wait: 0 }, tellsState: true,
      ...key && { key: key.text, event: { ...key.lifetime !== undefined && { lifetime: key.lifetime } } },
    }
    sender.admit(exchange, order)
    return sender.send(exchange, order)
  }

  /** @throws RelayError `not-found`, `method-not-allowed` */
  private async find({ params, request }: Exchange, { door, source, segments }: HookAddress): Promise<Source> {
    const { source: name = '' } = params
    const { sources, templates } = this.options
    const isOwn = !source && name !== digestTemplate && await templates.has(name)
    if (!source && !isOwn) demandNewName(name, sources)
    if (segments.length > 0 && !door?.takesTail) {
      throw new RelayError('not-found', say('address-goes-on', { name }))
    }
    if (source) return source
    if (request.method === 'GET') throw new RelayError('method-not-allowed', say('use-methods', { methods: ['POST', 'PUT'] }), { headers: { allow: 'POST, PUT' } })
    return isOwn ? ownSource(name) : genericSource(name)
  }

  /** The target of an address without one: the topic in the body, as ntfy's clients that post JSON have it. */
  private async topicOf(exchange: Exchange, source: Source): Promise<string> {
    if (source.takesTail) {
      exchange.body = await readBody(exchange, this.options.limits)
      const { topic } = (await parseHook(exchange, exchange.body, source)).payload
      if (typeof topic === 'string' && topic !== '') return topic
    }
    throw new RelayError('no-such-target', say('address-without-target', { name: source.name }))
  }

  /** Renders the message of an event. If the template fails, the message is a plain list of the fields. */
  private async render(
    id: string, source: Source, { view, format, line }: HookEvent, language: Language,
  ): Promise<{ items: Item[], severity: Severity | undefined }> {
    const { templates, logger } = this.options
    const { name, like = name, template } = source
    const rendered = await templates.render(like, view, language, template?.(language)).catch((error: unknown) => {
      logger.warn(say('template-failed', { id, name: JSON.stringify(name), reason: reasonOf(error) }))
      return { text: renderPlainly(view), pictures: [], severity: undefined }
    })
    const text = tidy(format === undefined ? rendered.text : readerOf(format)(rendered.text))
    const pictures = rendered.pictures.map((link): Item => ({ type: 'image', link }))
    const items: Item[] = text === '' ? pictures : [{ type: 'text', text, ...line !== undefined && { line } }, ...pictures]
    return { items, severity: rendered.severity }
  }
}

/** Identifies a caller by keys. Tells one without a right key where it belongs. */
function identifyBy(access: Access, keys: readonly Buffer[], { request, address }: Exchange, source: Source | undefined): Caller {
  try {
    return access.identify(keys, address)
  } catch (error) {
    if (!(error instanceof RelayError && error.code === 'unauthorized')) throw error
    const { keyHeader } = source ?? {}
    if (keyHeader !== undefined && keyHeader in request.headers) throw error.with({ said: say('no-such-token', { header: keyHeader }) })
    throw error.with({ said: say(source?.isSigned ? 'no-such-key-signed' : 'no-such-key-hooks') })
  }
}

function skip(why: Text): Success {
  return { data: { skipped: why }, log: say('skipped', { why }) }
}

/** Some senders have their payload in the query, so that `severity` may be a field of it: any usual word counts, and others do not. */
function readEventTiming(query: URLSearchParams): Timing & { stated: Severity | undefined } {
  const own = new URLSearchParams(query)
  own.delete('severity')
  return { ...readTiming(own), stated: severityOfWord(query.get('severity')) }
}

/** The statuses after which a thread is over. */
const over = new Set(['resolved', 'up', 'success'])

/** The thread of an event: that of the address, otherwise that of the event; none with `thread=0`. */
function threadOf(asked: string | undefined, { name }: Source, { thread, status }: HookEvent): Pick<Content, 'thread' | 'threadPhase'> {
  const phase = status === undefined ? {} : { threadPhase: over.has(status) ? 'over' as const : 'on' as const }
  const own = thread === undefined ? {} : { thread: `${name} ${thread}`, ...phase }
  return asked === undefined ? own : asked === '0' ? {} : { thread: asked }
}

/** The key of an event. It covers the address except the keys and what a client appends, because each address has events of its own. */
function keyFor(query: URLSearchParams, targets: string, source: Source, hook: HookRequest): EventKey | undefined {
  const key = source.keyOf?.(hook)
  if (!key) return
  const parameters = [...query].filter(([name]) => !isKeyField(name))
  return { ...key, text: JSON.stringify([source.name, targets, parameters, key.text]) }
}

/**
 * The reason why `?events=`, `?branch=` or `?status=` of the address excludes an event; `undefined` if none does. Each is a list with
 * commas, in which `*` matches any characters, including slashes. A filter does not apply to an event without the property.
 */
function whyFilteredOut({ name, branch, status }: HookEvent, query: URLSearchParams): Text | undefined {
  const isOut = (parameter: string, value: string | undefined): boolean => {
    const patterns = readList(query.getAll(parameter).join(',')) ?? []
    return value !== undefined && patterns.length > 0 && !patterns.some(pattern => matchesGlob(pattern, value))
  }
  if (status === started && !query.get('status')) return say('skip-started')
  if (isOut('events', name)) return say('skip-other-event')
  if (isOut('branch', branch)) return say('skip-other-branch')
  if (isOut('status', status)) return say('skip-other-status')
}

/** @throws RelayError `not-found` for a name that a source cannot have, and for one that is probably mistyped */
function demandNewName(name: string, sources: Sources): void {
  const isName = namePattern.test(name) && name !== digestTemplate
  const nearest = isName ? sources.nearest(name) : undefined
  if (isName && nearest === undefined) return
  throw new RelayError('not-found', nearest === undefined
    ? say('no-such-source-but', { names: sources.names(), rule: nameRule, digest: digestTemplate })
    : say('no-such-source-near', { nearest }), { logText: say('no-such-source') })
}
