import { v7 as uuid } from 'uuid'
import { RelayError, type Outcome } from '../errors'
import type { Hand } from '../incidents/incidents'
import type { Language } from '../texts/language'
import type { Content, Destination, Destinations } from '../message/model'
import { callsAll, demandCalled, wordsOf } from '../message/mentions'
import { keyOf, platformOf, waysOf, writeAddress, writeTarget } from '../message/target'
import { isRetryable, isUnfinished, outcomeOf, resultOf, type Delivery, type Results } from '../relay/delivery/delivery'
import type { Submission, Submitted } from '../relay/options'
import type { Wait } from '../relay/queue/queue'
import type { Relay } from '../relay/relay'
import { say, Text } from '../texts/text'
import type { Handling } from './preferences'
import type { Exchange, Success } from './routes'
import { viewFlow, viewResults, viewWaiting } from './views'

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
  /** The fields of the request without a meaning, safe for one line. */
  ignored?: readonly string[]
  /** What the caller may have meant instead, for the answer. */
  hint?: Text | undefined
}

interface Delivered { delivery: Delivery, headers: RelayError['headers'] }

/** What became of an order. With a `msg`, the order has failed, because a part of it did. */
interface Result extends Success {
  msg?: Text
  /** The outcome of all items, if they have the same one. */
  outcome?: Outcome
}

/** The most targets that a log line names. */
const maxNamed = 5

/** Sends an order to one or several targets and makes the answer, for the doors that answer in the envelope. */
export class Sender {
  /**
   * @param hand hands a submission to the core
   * @param prefix the prefix of the plugin's paths
   * @param isCalled whether a word means a person or a rota
   */
  constructor(
    private readonly relay: Relay, private readonly hand: Hand, private readonly prefix: string,
    private readonly isCalled: (word: string) => boolean,
  ) {}

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
        const expected = (isList && isBotKnown) || destination.route ? this.relay.inquiries.candidate(way)?.platform : undefined
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
    const { content, translations, destinations, isStrict, ignored = [] } = order
    const { caller } = exchange
    exchange.ignored = ignored
    if (isStrict && ignored.length > 0) {
      throw new RelayError('bad-request', say('meaningless-fields', { fields: ignored }), {
        headers: { 'preference-applied': strict },
        logText: say('fields-without-meaning'),
      })
    }
    this.demandTargets(exchange, destinations)
    if (content.mention) {
      const words = wordsOf(content.mention)
      demandCalled(words, 'mention', this.isCalled)
      if (callsAll(words)) caller.demand(['mention-all'])
    }
    for (const { items } of [content, ...translations?.values() ?? []]) caller.demandMentions(items)
    caller.spend(destinations.list.reduce((messages, destination) => messages + contentFor(order, destination).items.length, 0))
  }

  /**
   * Sends an admitted order, or, with `dry_run`, shows what would be sent.
   *
   * @throws RelayError the failure of an order for one target; `failed`, with all results, if a part of the order failed and the whole of
   * it is to fail. Otherwise each target of a list has an entry of its own.
   */
  async send(exchange: Exchange, order: Order): Promise<Success> {
    const { destinations: { list: [first], isList }, isStrict, ignored = [], hint } = order
    if (!first) throw new RelayError('internal')
    const { msg, outcome, ...answer } = isList ? await this.sendList(exchange, order) : await this.sendOne(exchange, order, first)
    const { status, log } = answer
    const applied = [...status === 202 && order.deferred ? ['respond-async'] : [], ...isStrict ? [strict] : []]
    const data = { ...answer.data, ...ignored.length > 0 && { ignored }, ...hint !== undefined && { hint } }
    const headers = { ...answer.headers, ...applied.length > 0 && { 'Preference-Applied': applied.join(', ') } }
    if (msg !== undefined) throw new RelayError('failed', msg, { status, outcome, details: data, headers, ...log instanceof Text && { logText: log } })
    return { ...answer, data, headers: { ...headers, ...outcome && { 'Relay-Outcome': outcome } } }
  }

  private async sendOne(exchange: Exchange, order: Order, destination: Destination): Promise<Result> {
    if (order.isDry) return { data: { dry_run: true, ...await this.preview(exchange, order, destination) } }
    const submitted = await this.submit(exchange, order, destination, exchange.id, this.hand)
    if ('skipped' in submitted) return { data: submitted, log: say('skipped', { why: submitted.skipped }) }
    const { delivery, headers } = this.withHeaders(exchange, submitted)
    const { id, mode, state, results } = delivery
    const wait = this.relay.waitOf(delivery)
    const fate = this.fateOf(delivery, wait, order.tellsState)
    if (fate instanceof RelayError) {
      throw ofDelivery(fate.with({ outcome: fate.outcome ?? 'unsent' }), id, headers)
    }
    if (order.tellsState) return { data: fate, headers, log: state }
    if (isUnfinished(state)) {
      const log = wait ? say('waits-log', { state, reason: wait.reason }) : state
      return { status: 202, data: fate, headers: { ...headers, Location: this.locationOf(delivery) }, log }
    }
    const [outcome = 'unsent', ...others] = new Set(results.map(outcomeOf))
    const told = { headers, ...others.length === 0 && { outcome } }
    return mode === 'single' ? { data: fate, ...told, log: state } : { ...toBatchAnswer(order, results, fate), ...told }
  }

  /**
   * Sends an admitted order to its only target, which is no name. The answer must have the returned headers, even a failure: they tell of a
   * repeated key.
   */
  async deliver(exchange: Exchange, order: Order, destination: Destination): Promise<Delivered> {
    const submitted = await this.submit(exchange, order, destination, exchange.id, submission => this.relay.submit(submission))
    return this.withHeaders(exchange, submitted)
  }

  private withHeaders(exchange: Exchange, { delivery, isReplay, retryAfter }: Submitted): Delivered {
    const headers = {
      ...isReplay && { 'Idempotent-Replayed': 'true' },
      // The delivery is that of the first request with the key (RFC 9110, section 8.7).
      ...delivery.id !== exchange.id && { 'Content-Location': this.locationOf(delivery) },
      // A batch is answered with a success, which has no `Retry-After`.
      ...retryAfter !== undefined && delivery.mode === 'single' && { 'retry-after': String(retryAfter) },
    }
    return { delivery, headers }
  }

  private locationOf({ id }: Delivery): string {
    return `${this.prefix}/deliveries/${id}`
  }

  private async sendList(exchange: Exchange, order: Order): Promise<Result> {
    const { destinations: { list }, isDry, tellsState } = order
    const deliveries = await Promise.all(list.map(async destination => {
      const entry = isDry ? this.preview(exchange, order, destination) : this.sendOneOfList(exchange, order, destination)
      return { target: writeTarget(destination.target), ...await entry.catch((error: unknown) => viewError(RelayError.from(error))) }
    }))
    const failed = deliveries.filter(({ success }) => !success).length
    const data = { ...isDry && { dry_run: true }, total: list.length, success: list.length - failed, failed, deliveries }
    const log = say(isDry ? 'deliveries-dry' : 'deliveries-succeeded', { success: list.length - failed, total: list.length })
    // No target was accepted, and a caller that checks only for acceptance looks at the status.
    if (tellsState && !isDry && failed === list.length) return { status: statusOf(deliveries), msg: say('some-failed', { failed, total: failed }), data, log }
    return { data, ...statusFor(order, failed, list.length), log }
  }

  private async sendOneOfList(exchange: Exchange, order: Order, destination: Destination): Promise<Entry> {
    // Each target has a key of its own. Its blank, which callers' keys cannot have, keeps it apart from a request for one target.
    const key = order.key && `${order.key} ${keyOf(destination)}`
    const submitted = await this.submit(exchange, { ...order, key }, destination, uuid(), this.hand)
    if ('skipped' in submitted) return { success: true, ...submitted }
    const { delivery, isReplay, retryAfter } = submitted
    const { id, mode, state } = delivery
    const { tellsState = false } = order
    const fate = this.fateOf(delivery, this.relay.waitOf(delivery), tellsState)
    return {
      delivery_id: id,
      ...isReplay && { replayed: true },
      ...fate instanceof RelayError ? viewError(fate) : { success: tellsState || !isRetryable(state), ...fate },
      ...!tellsState && retryAfter !== undefined && mode === 'single' && { retry_after: retryAfter },
    }
  }

  /**
   * What became of a delivery, for its caller: its failure, or else its state, results or message IDs, and its flow.
   *
   * @param wait why it waits
   * @param tellsState as `Order.tellsState`: then a delivery has failed only if all of its items did
   */
  private fateOf(delivery: Delivery, wait: Wait | undefined, tellsState: boolean | undefined): RelayError | object {
    const { id, state, mode, results } = delivery
    const failure = tellsState && failureOf(results)
    if (failure) return failure
    const flow = viewFlow(delivery)
    if (tellsState || isUnfinished(state)) return { delivery_id: id, ...viewWaiting(state, wait), ...flow }
    if (mode === 'batch') return { results: viewResults(results), delivery_id: id, ...flow }
    const result = resultOf(delivery)
    if (result?.success) return { message_ids: result.messageIds, delivery_id: id, ...flow }
    return result?.error ?? new RelayError('internal')
  }

  private async submit<T>(
    { caller, gone }: Exchange, order: Order, destination: Destination, id: string, hand: (submission: Submission) => Promise<T>,
  ): Promise<T> {
    const { door, key, event, deferred, onDelivery } = order
    const { target, bot, asked } = destination
    const { policy, route } = destination
    const content = contentFor(order, destination)
    const { mode, items, expiresIn, urgent, sendAt, thread, threadMode, threadPhase, longText, severity, mention, begunAt } = content
    // Field by field: spreading objects here takes a good part of the time of a request.
    const submission: Submission = {
      id, signal: gone, door, key, event, deferred,
      request: {
        mode, items, expiresIn, urgent, sendAt, thread, threadMode, threadPhase, longText, severity, mention, begunAt,
        target, bot, policy, route,
      },
      caller: caller.name,
      admit: (way, added) => {
        caller.demandTarget(way.target, way.platform, asked)
        if (added > 0) caller.owe(added)
      },
    }
    try {
      const submitted = await hand(submission)
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
    for (const way of route?.ways ?? [{ target: destination.target, ...destination.bot }]) {
      const { target } = way
      const request = { ...content, policy, target, bot: way }
      const seen = await this.relay.preview(request).catch((error: unknown) => {
        failure = error
      })
      if (!seen) continue
      const { bot, messages, wrong, wait } = seen
      caller.demandTarget(target, platformOf(bot), asked)
      const { state, ...waits } = viewWaiting('queued', wait)
      return {
        success: wrong.length === 0, target: writeTarget(target), bot, messages, ...wrong.length > 0 && { wrong },
        ...state === 'scheduled' && { state }, ...waits, ...route && { ways: route.ways.map(writeAddress) },
      }
    }
    throw failure
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

/** The answer about a batch that has ended. @param fate what became of its delivery */
function toBatchAnswer(order: Order, results: Results, fate: object): Result {
  const errors = results.flatMap(result => !result || result.success ? [] : [result.error])
  const statuses = [...new Set(errors.map(error => error.status))].join(' ')
  const total = results.length
  const success = results.filter(result => result?.success).length
  const failed = total - success
  const sent = say('items-sent', { success, total })
  const log = errors[0] ? say('items-failed', { sent, statuses, reason: errors[0].logText }) : sent
  return { data: { total, success, failed, ...fate }, ...statusFor(order, failed, total), log }
}

/** The status of an answer about a request that may have failed in part. With `fail=any`, for `curl -f`, any failure fails all of it. */
function statusFor({ failsWithAny }: Order, failed: number, total: number): Pick<Result, 'status' | 'msg'> {
  return failed > 0 && failsWithAny ? { status: 502, msg: say('some-failed', { failed, total }) } : {}
}

/** Adds the ID of the delivery to its failure, for the caller, and headers; its own headers take precedence. */
export function ofDelivery(error: RelayError, id: string, headers: RelayError['headers'] = {}): RelayError {
  return error.with({ details: { delivery_id: id }, headers: { ...headers, ...error.headers } })
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

function viewError(error: RelayError): Entry {
  return { success: false, code: error.status, msg: error.said, ...error.facts }
}

/** The preference for a failure if a field of the request would be ignored (RFC 7240, section 4.4). */
const strict = 'handling=strict'
