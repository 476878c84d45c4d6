import { v7 as uuid } from 'uuid'
import { RelayError } from '../errors'
import type { Language } from '../lib/language'
import type { Content, Destination, Destinations } from '../message/model'
import { keyOf, platformOf, waysOf, writeAddress, writeTarget } from '../message/target'
import { createDelivery, isUnfinished, outcomeOf, resultOf, type Delivery, type Results } from '../relay/delivery'
import type { Relay, Submission, Submitted } from '../relay/relay'
import type { Handling } from './preferences'
import type { Exchange, Success } from './routes'
import { viewFlow, viewResults, viewState } from './views'

/** The messages that a request asks for, and how to send them. */
export interface Order extends Pick<Submission, 'door' | 'event' | 'deferred'>, Partial<Omit<Handling, 'deferred'>> {
  content: Content
  /** Replaces `content` for destinations with these languages. */
  translations?: ReadonlyMap<Language, Content>
  destinations: Destinations
  /** Called for each delivery that the request creates. From then on, the delivery owns the uploaded files. */
  onDelivery?: () => void
  /** Whether the answer contains only the state of the delivery, without results: the caller needs to know only that it was accepted. */
  tellsState?: boolean
}

/** The most targets that a log line names. */
const maxNamed = 5

/** Sends an order to one or several targets and makes the answer, for the doors that answer in the envelope. */
export class Sender {
  /** @param prefix the prefix of the plugin's paths */
  constructor(private readonly relay: Relay, private readonly prefix: string) {}

  /**
   * Checks that the caller may send to these targets. A door that knows them can call this before it reads the message.
   *
   * @param isBotKnown whether the message cannot select another bot
   * @throws RelayError `forbidden`, even if only one of several targets is not allowed
   */
  demandTargets(exchange: Exchange, { list, isList }: Destinations, isBotKnown = true): void {
    const named = list.slice(0, maxNamed).map(({ target }) => writeTarget(target))
    exchange.target = list.length > maxNamed ? `${named.join()},… (${list.length} targets)` : named.join()
    for (const destination of list) {
      for (const way of waysOf(destination)) {
        // The platform is certain only at the send. By then, other targets of the list or earlier ways would already have been tried.
        const expected = (isList && isBotKnown) || destination.route ? this.relay.inquiries.platformFor(way) : undefined
        exchange.caller.demandTarget(way.target, expected ?? way.platform, destination.asked)
      }
    }
  }

  /**
   * Checks that the caller may send an order, and counts its messages. Call this once, before anything is sent.
   *
   * @throws RelayError `bad-request` if a strict request has fields that would be ignored; `forbidden`, as `demandTargets`; `rate-limited`
   */
  admit(exchange: Exchange, order: Order): void {
    const { content, translations, destinations, isStrict } = order
    const { caller, ignored = [] } = exchange
    if (isStrict && ignored.length > 0) {
      throw new RelayError('bad-request', `these fields have no meaning here, leave them out: ${ignored.join(', ')}`, {
        headers: { 'preference-applied': strict },
        logText: 'fields without a meaning',
      })
    }
    this.demandTargets(exchange, destinations)
    for (const { items } of [content, ...translations?.values() ?? []]) caller.demandMentions(items)
    caller.spend(destinations.list.reduce((messages, destination) => messages + contentFor(order, destination).items.length, 0))
  }

  /**
   * Sends an admitted order, or, with `dry_run`, shows what would be sent.
   *
   * @throws RelayError the failure of an order for one target; in a list, each target has an entry of its own
   */
  async send(exchange: Exchange, order: Order): Promise<Success> {
    const { response, ignored = [] } = exchange
    const { list: [first], isList } = order.destinations
    if (!first) throw new RelayError('internal')
    const answer = isList ? await this.sendList(exchange, order) : await this.sendOne(exchange, order, first)
    if (order.isStrict) response.appendHeader('Preference-Applied', strict)
    return ignored.length > 0 ? { ...answer, data: { ...answer.data, ignored } } : answer
  }

  private async sendOne(exchange: Exchange, order: Order, destination: Destination): Promise<Success> {
    const { response } = exchange
    if (order.isDry) return { data: { dry_run: true, ...await this.preview(exchange, order, destination) } }
    const delivery = await this.deliver(exchange, order, destination)
    const error = order.tellsState ? failureOf(delivery.results) : undefined
    if (error) throw ofDelivery(error, delivery.id)
    if (order.tellsState || isUnfinished(delivery.state)) {
      exchange.outcome = delivery.state
      const data = { delivery_id: delivery.id, ...viewState(delivery, this.relay), ...viewFlow(delivery) }
      if (order.tellsState) return { data }
      response.setHeader('Location', this.locationOf(delivery))
      if (order.deferred) response.appendHeader('Preference-Applied', 'respond-async')
      return { status: 202, data }
    }
    if (delivery.mode === 'batch') return toBatchAnswer(exchange, order, delivery)
    const result = resultOf(delivery)
    if (!result) throw new RelayError('internal')
    response.setHeader('Relay-Outcome', outcomeOf(result))
    if (!result.success) throw ofDelivery(result.error, delivery.id)
    exchange.outcome = 'sent'
    return { data: { message_ids: result.messageIds, delivery_id: delivery.id, ...viewFlow(delivery) } }
  }

  /** Sends an admitted order to its only target, and sets the headers for a repeated key. */
  async deliver(exchange: Exchange, order: Order, destination: Destination): Promise<Delivery> {
    const { id, response } = exchange
    const { delivery, isReplay, retryAfter } = await this.submit(exchange, order, destination, id)
    if (isReplay) response.setHeader('Idempotent-Replayed', 'true')
    // The delivery is that of the first request with the key (RFC 9110, section 8.7).
    if (delivery.id !== id) response.setHeader('Content-Location', this.locationOf(delivery))
    // A batch is answered with a success, which has no `Retry-After`.
    if (retryAfter !== undefined && delivery.mode === 'single') response.setHeader('Retry-After', retryAfter)
    return delivery
  }

  private locationOf({ id }: Delivery): string {
    return `${this.prefix}/deliveries/${id}`
  }

  private async sendList(exchange: Exchange, order: Order): Promise<Success> {
    const { destinations: { list }, isDry, tellsState } = order
    const deliveries = await Promise.all(list.map(async destination => {
      const entry = isDry ? this.preview(exchange, order, destination) : this.sendOneOfList(exchange, order, destination)
      return { target: writeTarget(destination.target), ...await entry.catch((error: unknown) => viewError(RelayError.from(error))) }
    }))
    const failed = deliveries.filter(({ success }) => !success).length
    exchange.outcome = `${list.length - failed} of ${list.length} deliveries succeeded${isDry ? ', as a dry run' : ''}`
    const data = { ...isDry && { dry_run: true }, total: list.length, success: list.length - failed, failed, deliveries }
    // No target was accepted, and a caller that checks only for acceptance looks at the status.
    if (tellsState && !isDry && failed === list.length) return { status: statusOf(deliveries), msg: `${failed} of ${failed} failed`, data }
    return withFailures(order, failed, data)
  }

  private async sendOneOfList(exchange: Exchange, order: Order, destination: Destination): Promise<Entry> {
    const id = uuid()
    // Each target has a key of its own. Its blank, which callers' keys cannot have, keeps it apart from a request for one target.
    const key = order.key && `${order.key} ${keyOf(destination)}`
    try {
      const { delivery, isReplay, retryAfter } = await this.submit(exchange, { ...order, key }, destination, id)
      const entry = order.tellsState ? this.viewAccepted(delivery) : this.viewDelivery(delivery)
      const hasRetryAfter = retryAfter !== undefined && !order.tellsState && delivery.mode === 'single'
      return { delivery_id: delivery.id, ...isReplay && { replayed: true }, ...entry, ...hasRetryAfter && { retry_after: retryAfter } }
    } catch (thrown) {
      return viewError(RelayError.from(thrown))
    }
  }

  private async submit({ caller, gone }: Exchange, order: Order, destination: Destination, id: string): Promise<Submitted> {
    const { door, key, event, deferred, onDelivery } = order
    const { target, bot, asked } = destination
    const { policy, route } = destination
    const { mode, items, expiresIn, urgent, sendAt, thread, threadMode, longText } = contentFor(order, destination)
    // Field by field: spreading objects here takes a good part of the time of a request.
    const submission: Submission = {
      id, signal: gone, door, key, event, deferred,
      request: { mode, items, expiresIn, urgent, sendAt, thread, threadMode, longText, target, bot, policy, route },
      caller: caller.name,
      admit: (way, added) => {
        caller.demandTarget(way.target, way.platform, asked)
        if (added > 0) caller.owe(added)
      },
    }
    try {
      const submitted = await this.relay.submit(submission)
      onDelivery?.()
      return submitted
    } catch (thrown) {
      const error = ofSubmission(thrown, id)
      // The request became a delivery, which can be retried and then needs its files.
      if (error.outcome) onDelivery?.()
      throw error
    }
  }

  /** Shows what a destination would get, by the first way that accepts it. Nothing is sent, so a send may still turn out differently. */
  private async preview({ caller }: Exchange, order: Order, destination: Destination): Promise<Entry> {
    const content = contentFor(order, destination)
    const { asked, route, policy } = destination
    let failure: unknown
    for (const way of route?.rungs ?? [{ target: destination.target, ...destination.bot }]) {
      const { target } = way
      const request = { ...content, policy, target, bot: way }
      const seen = await this.relay.preview(request).catch((error: unknown) => {
        failure = error
      })
      if (!seen) continue
      const { bot, messages, wrong } = seen
      caller.demandTarget(target, platformOf(bot), asked)
      const blank = { id: '', caller: null, door: '', summary: { items: [], calls: [], waited: null, platformTime: 0 } }
      const delivery = { ...createDelivery(blank, 0, Date.now(), request), bot, deferred: true }
      const { state, ...waits } = viewState(delivery, this.relay)
      return {
        success: wrong.length === 0, target: writeTarget(target), bot, messages, ...wrong.length > 0 && { wrong },
        ...state === 'scheduled' && { state }, ...waits, ...route && { ways: route.rungs.map(writeAddress) },
      }
    }
    throw failure
  }

  private viewAccepted(delivery: Delivery): Entry {
    const error = failureOf(delivery.results)
    return error ? viewError(error) : { success: true, ...viewState(delivery, this.relay), ...viewFlow(delivery) }
  }

  private viewDelivery(delivery: Delivery): Entry {
    const { state, mode, results } = delivery
    if (isUnfinished(state)) return { success: true, ...viewState(delivery, this.relay) }
    if (mode === 'batch') return { success: results.every(result => result?.success), results: viewResults(results), ...viewFlow(delivery) }
    const result = resultOf(delivery)
    if (!result) return viewError(new RelayError('internal'))
    return result.success ? { success: true, message_ids: result.messageIds, ...viewFlow(delivery) } : viewError(result.error)
  }
}

/** The content for a destination, in its language. */
function contentFor({ content, translations }: Order, { lang }: Destination): Content {
  return (lang && translations?.get(lang)) ?? content
}

/** The result for one of several targets. */
type Entry = { success: boolean, code?: number } & Readonly<Record<string, unknown>>

/** The statuses of failures that a repeated request may not meet again (RFC 6585, section 4; RFC 9110, section 15.6.4). */
const temporary: ReadonlySet<number | undefined> = new Set([429, 503])

/** The status of a request that failed for all targets: 503 if repeating it may help at least one of them, else that of the first. */
function statusOf(entries: readonly Entry[]): number {
  const mayHelp = entries.some(({ code, retry_after: retryAfter }) => temporary.has(code) || retryAfter !== undefined)
  return mayHelp ? 503 : entries[0]?.code ?? 500
}

function toBatchAnswer(exchange: Exchange, order: Order, delivery: Delivery): Success {
  const { id, results } = delivery
  const outcome = outcomeOf(results[0])
  if (results.every(result => outcomeOf(result) === outcome)) exchange.response.setHeader('Relay-Outcome', outcome)
  const statuses = new Set(results.flatMap(result => !result || result.success ? [] : [result.error.status]))
  const success = results.filter(result => result?.success).length
  const failed = results.length - success
  exchange.outcome = `${success} of ${results.length} sent${statuses.size > 0 ? `, the others ${[...statuses].join(' ')}` : ''}`
  const data = { total: results.length, success, failed, results: viewResults(results), delivery_id: id, ...viewFlow(delivery) }
  return withFailures(order, failed, data)
}

/** The answer to a request that may have failed in part. With `fail=any`, for `curl -f`, any failure fails the whole request. */
function withFailures({ failsWithAny }: Order, failed: number, data: { total: number }): Success {
  if (failed === 0 || !failsWithAny) return { data }
  return { status: 502, msg: `${failed} of ${data.total} failed`, data }
}

/** Adds the ID of the delivery to its failure, for the caller. */
export function ofDelivery(error: RelayError, id: string): RelayError {
  return error.with({ data: { delivery_id: id } })
}

/** The failure of a submission. One with an outcome became a delivery, except on a standby: its ID is added. */
function ofSubmission(thrown: unknown, id: string): RelayError {
  const error = RelayError.from(thrown)
  return error.outcome && error.code !== 'standby' ? ofDelivery(error, id) : error
}

/** The first error of a delivery all of whose items have failed; `undefined` for any other. */
function failureOf(results: Results): RelayError | undefined {
  const [first] = results
  return first && !first.success && results.every(result => result && !result.success) ? first.error : undefined
}

function viewError({ status, message, outcome, data, headers: { 'retry-after': retryAfter } }: RelayError): Entry {
  const { delivery_id: id, ...rest }: { delivery_id?: string } = data ?? {}
  return {
    ...id !== undefined && { delivery_id: id },
    success: false, code: status, msg: message,
    ...outcome && { outcome },
    ...retryAfter !== undefined && { retry_after: Number(retryAfter) },
    ...rest,
  }
}

/** The preference for a failure if a field of the request would be ignored (RFC 7240, section 4.4). */
const strict = 'handling=strict'
