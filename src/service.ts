import { h, Service, type Context, type Events } from 'koishi'
import { v7 as uuid } from 'uuid'
import { demand, RelayError, type ErrorCode } from './errors'
import { keyIn, type Sources } from './hooks'
import type { Hearer } from './incidents/callback'
import type { Incident, TimelineEntry } from './incidents/incident'
import type { Hand } from './incidents/incidents'
import { safeName } from './lib/file-name'
import type { InFlight } from './lib/async'
import { unwrap } from './lib/koishi'
import type { Language } from './texts/language'
import { describePlace, printable, type Log } from './lib/log'
import { toText } from './lib/shape'
import type { Content, Destinations, TargetNames } from './message/model'
import { parseContent, parseSelector, parseTo } from './message/parse'
import { demandCalled, wordsOf } from './message/mentions'
import { keyOf, parseDestinations, writeTarget } from './message/target'
import { messageIdsOf, outcomeOf, resultOf, type Delivery } from './relay/delivery/delivery'
import type { Observer, Submission } from './relay/options'
import type { Relay } from './relay/relay'
import { say, words } from './texts/text'

declare module 'koishi' {
  interface Context {
    messageRelay: MessageRelay
  }

  interface Events {
    /** A delivery has arrived, of any caller. */
    'message-relay/sent'(delivery: RelayDelivery): void
    /** A delivery of any caller has ended without arriving, or perhaps without arriving. After a retry it ends again. */
    'message-relay/failed'(delivery: RelayDelivery): void
    /** Something happened to an incident: at least once each, as `entry` says. The incident is as it is by then. */
    'message-relay/incident'(incident: RelayIncident, entry: RelayIncidentEntry): void
  }
}

/** A snapshot of an incident. Times are in milliseconds since the epoch. */
export interface RelayIncident {
  id: string
  /** The name whose thread it is. */
  name: string
  state: 'open' | 'taken' | 'silenced' | 'resolved'
  severity: 'critical' | 'warning' | 'info' | 'ok'
  thread: string
  title: string
  /** Who has it. */
  owner?: string
  since: number
  takenAt?: number
  silencedUntil?: number
  resolvedAt?: number
  /** The number of its events. */
  events: number
}

/** What happened to an incident. */
export interface RelayIncidentEntry {
  kind: 'opened' | 'event' | 'taken' | 'silenced' | 'woken' | 'released' | 'escalated' | 'reminded' | 'resolved'
  at: number
  /** Who did it; absent for the source of the messages, and for the relay. */
  by?: string
  /** The number of the step in the escalation, counted from 1. */
  step?: number
  /** Until when it is silent. */
  until?: number
}

/** A snapshot of a message on its way to one chat. */
export interface RelayDelivery {
  id: string
  /** Such as `group:123456`. */
  target: string
  /** `platform:selfId` of the bot that sends; empty until there is one. */
  bot: string
  /** `webhook`, `hooks/github` and the like; `plugin` for messages of plugins. */
  door: string
  /** The name of the caller's key, or `plugin:` and the name of a plugin; `null` for the master key and the relay itself. */
  caller: string | null
  state: 'scheduled' | 'queued' | 'sending' | 'sent' | 'failed' | 'unanswered' | 'expired' | 'skipped'
  /** The outcome; absent until the delivery has ended, and if it could not start. */
  outcome?: 'sent' | 'refused' | 'unsent' | 'unanswered'
  /** The IDs that the platform gave. */
  messageIds: string[]
  /** Why the message did not arrive, or why it waits. */
  reason?: string
  /** The error with which the relay did not accept the message; absent once it did, whatever became of the message then. */
  refusal?: ErrorCode
}

/** An item, as in `messages` of `POST /webhook`. */
export type RelayItem = { type?: 'text', msg: string } | { type: 'image' | 'file' | 'video' | 'audio', url: string, name?: string }
  | { type: 'at', user_id: string } | { type: 'reply', message_id: string }

/** Koishi elements (text, img, video, audio, file, at, quote), or items. A string is parsed as markup, as by `bot.sendMessage`. */
export type RelayContent = h.Fragment | readonly (string | h | RelayItem)[]

/** Options of a message. Times are in seconds. */
export interface RelaySendOptions {
  /** An idempotency key: the plugin sends a message only once per key. */
  key?: string
  /** Skips digests and quiet hours. */
  urgent?: boolean
  /** Groups messages to one chat into a thread. */
  thread?: string
  threadMode?: 'reply' | 'update' | 'replace'
  /** When to send: a time, or a number of seconds from now. `send` then returns at once. */
  sendAt?: Date | number
  /** How bad it is: `ok` for the end of what was wrong. */
  severity?: 'critical' | 'warning' | 'info' | 'ok'
  /** Whom to call by `@`: people and rotas of the settings, `all` or `none`, also by severity. By default whom the name calls. */
  mention?: string | readonly string[] | Partial<Record<'critical' | 'warning' | 'info', string | readonly string[]>>
  expiresIn?: number
  /**
   * How long to wait for the result, at most 600; the message then continues in the background, and may wait for its bot. Without this
   * option, `send` waits until the message has ended.
   */
  wait?: number
  platform?: string
  selfId?: string
}

/** Options of a message that is the body of a request. */
export interface RelayPostOptions extends Pick<RelaySendOptions, 'key' | 'wait'> {
  /** The target, or names and targets with commas, of a body that may not name any. */
  to?: string
}

/** Turns the webhooks of another system into messages. */
export interface RelaySource {
  /**
   * Reads the posted JSON or form. An exception is answered with 400.
   *
   * @returns the event: the data for its template, its name for `?events=`, its thread, status and severity; or the reason why it makes no
   *   message
   */
  read: (payload: Readonly<Record<string, unknown>>, headers: Readonly<Record<string, string | string[] | undefined>>) =>
    { name: string, view: Readonly<Record<string, unknown>>, thread?: string, status?: string, severity?: RelaySendOptions['severity'] }
    | { skipped: string }
  /** A Liquid template, or one per language. */
  template: string | Record<Language, string>
}

interface ServiceOptions {
  relay: Relay
  hand: Hand
  /** The names of targets. */
  names: TargetNames
  /** Whether a word means a person or a rota. */
  isCalled: (word: string) => boolean
  sources: Sources
  inFlight: InFlight
  language: Language
}

/** @internal The door of plugins. */
export const pluginDoor = 'plugin'

/** The service for other plugins of the bot: `ctx.messageRelay`. */
export class MessageRelay extends Service {
  /** @internal The plugin makes the only instance. */
  constructor(ctx: Context, private readonly options: ServiceOptions) {
    super(ctx, 'messageRelay', true)
  }

  /**
   * Sends a message.
   *
   * @param to a target such as `group:123456`, a name for one or several, or a list of these
   * @returns one delivery per chat, arrived or not; one without an outcome was refused before it became a delivery, as `reason` explains
   * @throws RelayError the message is malformed, or, for a single chat, was refused before it became a delivery
   */
  async send(
    to: string | readonly string[], content: RelayContent, options: RelaySendOptions = {},
  ): Promise<[RelayDelivery, ...RelayDelivery[]]> {
    const { platform, selfId } = options
    return this.submit(options, names => ({
      destinations: parseTo({ to, platform, self_id: selfId }, names), content: readContent(content, options),
    }))
  }

  /**
   * Sends what a body of `POST /webhook` says, parsed from JSON. Its items fail one by one, as over HTTP.
   *
   * @returns as `send`
   * @throws as `send`
   */
  async post(body: unknown, options: RelayPostOptions = {}): Promise<[RelayDelivery, ...RelayDelivery[]]> {
    const { to } = options
    return this.submit(options, names => ({
      destinations: to === undefined ? parseTo(body, names) : parseDestinations(to, parseSelector(body), names),
      content: parseContent(body),
    }))
  }

  /** The language of the relay's log lines. */
  get language(): Language {
    return this.options.language
  }

  private async submit(
    { key, wait }: Pick<RelaySendOptions, 'key' | 'wait'>, read: (names: TargetNames) => { destinations: Destinations, content: Content },
  ): Promise<[RelayDelivery, ...RelayDelivery[]]> {
    const { relay, hand, names, inFlight, isCalled } = this.options
    // Koishi sets `ctx` to the context of the calling plugin.
    const { name } = this.ctx
    demand(key === undefined || /^[\x21-\x7e]{1,255}$/.test(key), say('key-of-service'))
    demand(wait === undefined || (wait >= 0 && wait <= 600), say('wait-of-service'))
    // Names that were made at run time are in the store, which may still be opening.
    await relay.active().catch(() => undefined)
    const { destinations: { list, isList }, content } = read(names)
    demandCalled(wordsOf(content.mention), 'mention', isCalled)
    const order = {
      caller: `plugin:${printable(name.slice(0, 64))}`, ...wait !== undefined && { deferred: { wait: wait * 1000 } },
    }
    const leave = inFlight.enter()
    try {
      const [first, ...others] = await Promise.all(list.map(destination => {
        const { target, bot, policy, route } = destination
        // Each chat has a key of its own.
        const ownKey = isList && key !== undefined ? `${key} ${keyOf(destination)}` : key
        return submit(relay, hand, { ...order, key: ownKey, request: { ...content, target, bot, policy, route } }, isList)
      }))
      if (!first) throw new RelayError('internal')
      return [first, ...others]
    } finally {
      leave()
    }
  }

  /** The state of a delivery of any caller. @throws RelayError `not-found`, `store-down` */
  async get(id: string): Promise<RelayDelivery> {
    const { relay } = this.options
    return view((await relay.history()).get(id), relay)
  }

  /** Withdraws a waiting delivery. @throws RelayError `not-found`; `conflict` if it is too late; `store-down` */
  async withdraw(id: string): Promise<void> {
    await this.options.relay.withdraw(id)
  }

  /**
   * Adds a source: posts to `/hooks/<name>/<target>` are read by it and sent. The source is removed with the plugin that added it.
   *
   * @returns a function that removes the source earlier
   * @throws RelayError `bad-request` for a malformed name, `conflict` for a name in use
   */
  source(name: string, { read, template }: RelaySource): () => void {
    const { sources } = this.options
    return this.ctx.effect(() => sources.add({
      name,
      template: language => typeof template === 'string' ? template : template[language],
      read({ payload, headers }) {
        try {
          const reading = read(payload, headers)
          return 'skipped' in reading ? { skipped: words(reading.skipped) } : reading
        } catch (cause) {
          throw new RelayError('bad-request', say('plugin-cannot-read', { name }), {
            cause, logText: say('plugin-reader-failed', { name, place: describePlace(cause) }),
          })
        }
      },
      keyOf: keyIn('idempotency-key', 'webhook-id'),
    }))
  }
}

/** @internal Emits events to other plugins when deliveries end. */
export function announceEnds(ctx: Context, logger: Pick<Log, 'warn'>): Pick<Observer, 'ended'> {
  const emit = emitter(ctx, logger)
  return { ended: delivery => emit(delivery.state === 'sent' ? 'message-relay/sent' : 'message-relay/failed', () => [view(delivery)]) }
}

/** @internal Emits what happens to incidents to other plugins. */
export function announceIncidents(ctx: Context, logger: Pick<Log, 'warn'>): Hearer {
  const emit = emitter(ctx, logger)
  return (incident, entry) => emit('message-relay/incident', () => [viewIncident(incident), viewEntry(entry)])
}

/** Emits events, whose data are made only if a plugin listens. */
function emitter(ctx: Context, logger: Pick<Log, 'warn'>) {
  // Read once, because access through the context is slow.
  const lifecycle = unwrap(ctx.root.lifecycle)
  const listeners: Readonly<Partial<Record<string, readonly unknown[]>>> = lifecycle._hooks
  return <Name extends 'message-relay/sent' | 'message-relay/failed' | 'message-relay/incident'>(event: Name, data: () => Parameters<Events[Name]>): void => {
    if (!listeners[event]?.length) return
    lifecycle.parallel(event, ...data()).catch((error: unknown) => {
      logger.warn(say('listener-failed', { event, place: describePlace(error) }))
    })
  }
}

function viewIncident(incident: Incident): RelayIncident {
  const { id, name, state, severity, thread, title, owner, since, takenAt, silencedUntil, resolvedAt, events } = incident
  return {
    id, name, state, severity, thread, title, ...owner && { owner: owner.name }, since, ...takenAt !== undefined && { takenAt },
    ...silencedUntil !== undefined && { silencedUntil }, ...resolvedAt !== undefined && { resolvedAt }, events,
  }
}

function viewEntry({ kind, at, by, step, until }: TimelineEntry): RelayIncidentEntry {
  return { kind, at, ...by && { by: by.name }, ...step !== undefined && { step: step + 1 }, ...until !== undefined && { until } }
}

/** @param isList whether there are other chats: then an error of one is a result of its own, and does not throw */
async function submit(
  relay: Relay, hand: Hand, order: Pick<Submission, 'deferred' | 'key' | 'request'> & { caller: string }, isList: boolean,
): Promise<RelayDelivery> {
  const submission = { id: uuid(), door: pluginDoor, ...order }
  const { id, door, caller, request: { target } } = submission
  try {
    const submitted = await hand(submission)
    const isSkipped = 'skipped' in submitted
    if (isSkipped) return { id, target: writeTarget(target), bot: '', door, caller, state: 'skipped', messageIds: [], reason: submitted.skipped }
    return view(submitted.delivery, relay)
  } catch (thrown) {
    const { code, outcome, message } = RelayError.from(thrown)
    if (!outcome && !isList) throw thrown
    const state = outcome === 'unanswered' ? outcome : code === 'expired' ? code : 'failed'
    return {
      id, target: writeTarget(target), bot: '', door, caller, state, ...outcome && { outcome }, messageIds: [], reason: message, refusal: code,
    }
  }
}

/** @param relay tells why a delivery waits */
function view(delivery: Delivery, relay?: Relay): RelayDelivery {
  const { id, target, bot, door, caller, state } = delivery
  const result = state === 'queued' || state === 'sending' ? undefined : resultOf(delivery)
  const wait = relay?.waitOf(delivery)
  const reason = result?.success === false ? result.error.message : wait?.reason.toString()
  return {
    id, target: writeTarget(target), bot, door, caller, state: wait?.cause === 'scheduled' ? wait.cause : state,
    ...result && { outcome: outcomeOf(result) }, messageIds: messageIdsOf(delivery), ...reason !== undefined && { reason },
  }
}

/** @throws RelayError `bad-request` */
function readContent(content: RelayContent, options: RelaySendOptions): Content {
  const { urgent, thread, threadMode, sendAt, expiresIn, severity, mention } = options
  const pieces: ReturnType<typeof toItem>[] = []
  for (const piece of (typeof content === 'string' ? h.parse(content) : [content].flat()).map(toItem)) {
    const last = pieces.at(-1)
    const isText = [piece, last].every(each => each?.type === 'text' && typeof each.msg === 'string')
    if (last && isText) pieces[pieces.length - 1] = { ...last, msg: `${toText(last.msg)}${toText(piece.msg)}` }
    else pieces.push(piece)
  }
  // White space between two mentions is no text.
  const messages = pieces.filter(({ type, msg }) => type !== 'text' || typeof msg !== 'string' || msg.trim() !== '')
  demand(messages.length > 0, say('nothing-to-send'))
  demand(!(sendAt instanceof Date && Number.isNaN(sendAt.getTime())), say('send-at-date'))
  const at = sendAt instanceof Date ? sendAt.toISOString() : sendAt
  const { items, ...rest } = parseContent({
    messages, urgent, thread, thread_mode: threadMode, send_at: at, expires_in: expiresIn, severity, mention,
  })
  return {
    ...rest, mode: 'single',
    items: items.map((item, index) => {
      if (item instanceof RelayError) throw item
      const { name } = messages[index] ?? {}
      return 'link' in item && typeof name === 'string' && name !== '' ? { ...item, name: safeName(name) } : item
    }),
  }
}

/** An item in the form of `POST /webhook`, before parsing. */
function toItem(piece: string | h | RelayItem): Readonly<Record<string, unknown>> {
  if (typeof piece === 'string') return { type: 'text', msg: piece }
  if (!h.isElement(piece)) return { type: 'text', ...piece }
  const { type, attrs: { content, id, src, url, title, type: who } }: { type: string, attrs: Readonly<Record<string, unknown>> } = piece
  switch (type) {
    case 'text':
      return { type, msg: content }
    case 'at':
      return { type, user_id: who ?? id }
    case 'quote':
      return { type: 'reply', message_id: id }
    case 'img':
    case 'image':
      return { type: 'image', url: src ?? url }
    case 'video':
    case 'audio':
    case 'file':
      return { type, url: src ?? url, name: title }
    default:
      throw new RelayError('bad-request', say('element-not-sendable', { type }))
  }
}
