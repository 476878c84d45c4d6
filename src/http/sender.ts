import { v7 as uuid } from 'uuid'
import type { Caller } from '../access/caller'
import { RelayError } from '../errors'
import { goneSignal } from '../lib/abort'
import { keyOf } from '../message/destination'
import type { Content, Destination, Destinations } from '../message/model'
import { platformOf, writeTarget } from '../message/target'
import { isUnfinished, outcomeOf, type Delivery, type Results } from '../relay/delivery/delivery'
import type { Relay, Submission, Submitted } from '../relay/relay'
import type { RequestFiles } from '../uploads/request-files'
import { viewResults } from './deliveries'
import { parseConduct } from './preferences'
import type { AllowedExchange, Exchange, Success } from './routes'

/** What a request wants sent, and how. */
export interface Order extends Pick<Submission, 'door' | 'key' | 'event' | 'deferred'> {
  content: Content
  destinations: Destinations
  /** Whether it is to fail where something in the request would be ignored. */
  isStrict?: boolean
  /** The files that it brings along: they are kept where a delivery comes of it. */
  files?: RequestFiles
  /** Whether its caller only asks whether it was accepted, and is told the state of the delivery; what becomes of it is in the record. */
  tellsState?: boolean
}

/** How many targets a line of the log names. */
const maxNamed = 5

/**
 * Has the relay send what a request asks for, to one target or several, and makes the answer of it, for the doors that answer in the
 * envelope.
 */
export class Sender {
  /** @param prefix stands before the paths of the plugin */
  constructor(private readonly relay: Relay, private readonly prefix: string) {}

  /**
   * Checks that a caller may send to these, for a door that knows them before it has read what is to be sent.
   *
   * @throws RelayError `forbidden`, also where only one of several targets is not allowed
   */
  demandTargets(exchange: AllowedExchange, { list }: Destinations): void {
    const named = list.slice(0, maxNamed).map(({ target }) => writeTarget(target)).join()
    exchange.target = list.length > maxNamed ? `${named},… (${list.length} targets)` : named
    for (const { target, bot, asked } of list) exchange.caller.demandTarget(target, bot.platform, asked)
  }

  /**
   * Checks that a caller may send this, and counts it. To be called once, before anything is sent.
   *
   * @throws RelayError `bad-request` where nothing may be ignored and something would be; `forbidden`, as `demandTargets`; `rate-limited`
   */
  admit(exchange: AllowedExchange, { content: { items }, destinations, isStrict }: Order): void {
    const { caller, ignored = [] } = exchange
    const { list } = destinations
    if (isStrict && ignored.length > 0) throw ignoredError(ignored)
    this.demandTargets(exchange, destinations)
    if (destinations.isList) this.demandPlatforms(caller, destinations)
    caller.demandMentions(items)
    caller.spend(items.length * list.length)
  }

  /**
   * Checks that a caller may send to all of several targets where their messages would go now. Of each that is only known once it leaves,
   * and by then others would have left.
   */
  private demandPlatforms(caller: Caller, { list }: Destinations): void {
    for (const { target, bot, asked } of list) caller.demandTarget(target, this.relay.inquiries.platformFor(bot), asked)
  }

  /**
   * Sends an order that was admitted, or, with `dry_run`, shows what would be sent.
   *
   * @throws RelayError what stops a request for one target; of several, each has its own answer
   */
  async send(exchange: AllowedExchange, order: Order): Promise<Success> {
    const { ignored = [] } = exchange
    const answer = await this.sendAll(exchange, order)
    if (order.isStrict) exchange.response.appendHeader('Preference-Applied', strict)
    return ignored.length > 0 ? { ...answer, data: { ...answer.data, ignored } } : answer
  }

  private async sendAll(exchange: AllowedExchange, order: Order): Promise<Success> {
    const { query, response } = exchange
    const { list, isList } = order.destinations
    const [first] = list
    if (!first) throw new RelayError('internal')
    const { isDry } = parseConduct(query)
    if (!isList && isDry) return { data: { dry_run: true, ...await this.preview(exchange, order, first) } }
    let gone: AbortSignal | undefined
    const signal = (): AbortSignal => gone ??= goneSignal(response)
    if (!isList) return this.sendOne(exchange, order, first, signal)
    const deliveries = await Promise.all(list.map(async destination => {
      const entry = isDry ? this.preview(exchange, order, destination) : this.sendOneOfMany(exchange, order, destination, signal)
      return { target: writeTarget(destination.target), ...await entry.catch((error: unknown) => viewError(RelayError.from(error))) }
    }))
    const failed = deliveries.filter(({ success }) => !success).length
    exchange.outcome = `${failed} of ${list.length} deliveries failed${isDry ? ', as a dry run' : ''}`
    const data = { ...isDry && { dry_run: true }, total: list.length, success: list.length - failed, failed, deliveries }
    // Nothing of it was accepted, which is all that whoever asks for no more has to be told.
    if (order.tellsState && !isDry && failed === list.length) return { status: statusOf(deliveries), msg: `${failed} of ${failed} failed`, data }
    return withFailures(exchange, failed, data)
  }

  private async sendOne(exchange: AllowedExchange, order: Order, destination: Destination, signal: Signal): Promise<Success> {
    const { id, response } = exchange
    const { content: { mode }, deferred } = order
    const { delivery, isReplay, retryAfter } = await this.submit(exchange.caller, order, destination, { id, signal })
    if (isReplay) response.setHeader('Idempotent-Replayed', 'true')
    // The record is that of the first request with the key (RFC 9110, section 8.7).
    if (delivery.id !== id) response.setHeader('Content-Location', `${this.prefix}/deliveries/${delivery.id}`)
    // Of a batch the answer is no failure, which is what this header is for.
    if (retryAfter !== undefined && mode === 'single') response.setHeader('Retry-After', retryAfter)
    if (order.tellsState) return toStateAnswer(exchange, delivery)
    const answer = this.toAnswer(exchange, delivery)
    if (deferred && answer.status === 202) response.appendHeader('Preference-Applied', 'respond-async')
    return answer
  }

  private async sendOneOfMany({ caller }: AllowedExchange, order: Order, destination: Destination, signal: Signal): Promise<Entry> {
    const id = uuid()
    // A key holds for each target by itself. None has a blank in it, so that this is never the key of a request for one target.
    const key = order.key && `${order.key} ${keyOf(destination)}`
    try {
      const own = { ...order, ...key !== undefined && { key } }
      const { delivery, isReplay, retryAfter } = await this.submit(caller, own, destination, { id, signal })
      const told = order.tellsState ? viewState(delivery) : viewDelivery(delivery)
      const isTold = retryAfter !== undefined && !order.tellsState && delivery.mode === 'single'
      return { delivery_id: delivery.id, ...isReplay && { replayed: true }, ...told, ...isTold && { retry_after: retryAfter } }
    } catch (thrown) {
      const error = RelayError.from(thrown)
      // Without an outcome it has not become a delivery.
      return { ...error.outcome && { delivery_id: id }, ...viewError(error) }
    }
  }

  private async submit(
    caller: Caller, order: Order, { target, bot, asked }: Destination, { id, signal }: Pick<Submission, 'id' | 'signal'>,
  ): Promise<Submitted> {
    const { content: { mode, items, expiresIn }, door, key, event, deferred, files } = order
    // Field by field: an object that is spread, and then added to, takes a good part of a request.
    const submission: Submission = {
      id, signal, door, key, event, deferred,
      request: { mode, items, expiresIn, target, bot },
      caller: caller.name,
      admit: platform => caller.demandTarget(target, platform, asked),
    }
    try {
      const submitted = await this.relay.submit(submission)
      files?.keep()
      return submitted
    } catch (error) {
      // Without an outcome it has not become a delivery, which could be sent again.
      if (RelayError.from(error).outcome) files?.keep()
      throw error
    }
  }

  private async preview({ caller }: AllowedExchange, { content }: Order, { target, bot, asked }: Destination): Promise<Entry> {
    const { bot: chosen, messages, wrong } = await this.relay.preview({ ...content, target, bot })
    caller.demandTarget(target, platformOf(chosen), asked)
    return { success: wrong.length === 0, target: writeTarget(target), bot: chosen, messages, ...wrong.length > 0 && { wrong } }
  }

  private toAnswer(exchange: Exchange, { id, state, mode, results }: Delivery): Success {
    const { response } = exchange
    if (isUnfinished(state)) {
      exchange.outcome = state
      response.setHeader('Location', `${this.prefix}/deliveries/${id}`)
      return { status: 202, data: { delivery_id: id, state } }
    }
    const outcome = outcomeOf(results[0])
    if (results.every(result => outcomeOf(result) === outcome)) response.setHeader('Relay-Outcome', outcome)
    if (mode === 'batch') return toBatchAnswer(exchange, results)
    const [result] = results
    if (!result) throw new RelayError('internal')
    if (!result.success) throw result.error
    exchange.outcome = 'sent'
    return { data: { message_ids: result.messageIds } }
  }
}

/** Gives what is aborted when the client has gone away before its answer. */
type Signal = () => AbortSignal

/** What became of one of several targets. */
type Entry = { success: boolean, code?: number } & Readonly<Record<string, unknown>>

/** What stands for failures that may be over when the request comes again (RFC 6585, section 4; RFC 9110, section 15.6.4). */
const temporary: ReadonlySet<number | undefined> = new Set([429, 503])

/** The status of a request of which everything has failed. Whoever is told to come again does, so that must be of use to one target. */
function statusOf(entries: readonly Entry[]): number {
  const mayHelp = entries.some(({ code, retry_after: retryAfter }) => temporary.has(code) || retryAfter !== undefined)
  return mayHelp ? 503 : entries[0]?.code ?? 500
}

function viewDelivery({ state, mode, results }: Delivery): Entry {
  if (isUnfinished(state)) return { success: true, state }
  if (mode === 'batch') return { success: results.every(result => result?.success), results: viewResults(results) }
  const [result] = results
  if (!result) return viewError(new RelayError('internal'))
  return result.success ? { success: true, message_ids: result.messageIds } : viewError(result.error)
}

/** The answer of a request whose caller only wants to know that it was accepted. */
function toStateAnswer(exchange: Exchange, { id, state, results }: Delivery): Success {
  const error = failureOf(results)
  if (error) throw error
  exchange.outcome = state
  return { data: { delivery_id: id, state } }
}

function viewState({ state, results }: Delivery): Entry {
  const error = failureOf(results)
  return error ? viewError(error) : { success: true, state }
}

/** Why nothing of a delivery has arrived, where that is known already. */
function failureOf(results: Results): RelayError | undefined {
  const [first] = results
  return first && !first.success && results.every(result => result && !result.success) ? first.error : undefined
}

function viewError({ status, message, outcome, headers }: RelayError): Entry {
  const { 'retry-after': retryAfter } = headers
  return {
    success: false, code: status, msg: message,
    ...outcome && { outcome },
    ...retryAfter !== undefined && { retry_after: Number(retryAfter) },
  }
}

function toBatchAnswer(exchange: Exchange, results: Results): Success {
  const success = results.filter(result => result?.success).length
  const statuses = new Set(results.flatMap(result => !result || result.success ? [] : [result.error.status]))
  const failed = results.length - success
  exchange.outcome = `${success} of ${results.length} sent${statuses.size > 0 ? `, the others ${[...statuses].join(' ')}` : ''}`
  const data = { total: results.length, success, failed, results: viewResults(results) }
  return withFailures(exchange, failed, data)
}

/** The answer of a request of which a part may have failed. With `fail=any` this makes it a failure as a whole, for `curl -f`. */
function withFailures({ query }: Exchange, failed: number, data: { total: number }): Success {
  if (failed === 0 || !parseConduct(query).failsWithAny) return { data }
  return { status: 502, msg: `${failed} of ${data.total} failed`, data }
}

/** The preference for a failure where something in the request would be ignored (RFC 7240, section 4.4). */
const strict = 'handling=strict'

function ignoredError(names: readonly string[]): RelayError {
  return new RelayError('bad-request', `these fields have no meaning here: ${names.join(', ')}`, {
    headers: { 'preference-applied': strict },
    logText: 'fields without a meaning',
  })
}
