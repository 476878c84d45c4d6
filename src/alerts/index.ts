import type { Context } from 'koishi'
import { v7 as uuid } from 'uuid'
import { RelayError } from '../errors'
import { httpOf, parseEndpoint, type Endpoint } from '../lib/endpoint'
import { unwrap } from '../lib/koishi'
import { printable, type Log, type Warn } from '../lib/log'
import { minute } from '../lib/time'
import { causes, explain, type CauseId, type Reason } from '../message/causes'
import type { Address, Destination, TargetNames } from '../message/model'
import { parseDestinations, platformOf, waysOf, writeTarget } from '../message/target'
import { goneBecause, type Delivery } from '../relay/delivery/delivery'
import { type Observer, alertDoor } from '../relay/options'
import { queueOf, readQueue } from '../relay/queue/queue'
import type { Relay } from '../relay/relay'
import type { Language } from '../texts/language'
import { postAlert, toBody } from './post'
import { kinds, writeAlert, type Alert, type Kind, type Subject } from './texts'
import { Watch, type Trouble } from './watch'
import { say, words, type Text } from '../texts/text'

/** The time between two checks, in milliseconds. */
const interval = 1_000
/** How long an alert to a target may wait, for the last receiver and for one before it, in milliseconds. */
const lifetime = { last: 10 * minute, other: minute / 4 }

/** A receiver of alerts. */
type Recipient = { endpoint: Endpoint } | { destinations: readonly Destination[] }

/** The parts of the plugin that alerts need. */
export interface AlertOptions {
  relay: Pick<Relay, 'submit' | 'failing' | 'queues' | 'isActive'>
  /** `platform:selfId` of each bot, its state, and why it cannot send. */
  bots: () => readonly (Partial<Reason> & { platform: string, self_id: string, status: string })[]
  language: Language
  /** How long a post may take, in milliseconds. */
  timeout: number
  /** Aborted when the relay stops. */
  stop: AbortSignal
}

/** The options of a dispatch: those of alerts, with the receivers and the logger. */
interface DispatchOptions extends AlertOptions {
  ctx: Context
  recipients: readonly Recipient[]
  logger: Log
}

/** A value that depends on the reader's language. */
type Localized<T> = (language: Language) => T

/** The present troubles of one kind: the names of the subjects, with the reasons. */
type Present = ReadonlyMap<string, Localized<string | undefined> | undefined>

/** The known troubles. They belong to the app, so that a reload of the plugin repeats no alert. */
class Watches {
  readonly offline = new Watch({ begin: minute / 2, end: minute, again: 60 * minute })
  readonly restricted = new Watch({ begin: 0, end: 0, again: 60 * minute })
  readonly paused = new Watch({ begin: 10_000, end: 5 * minute })
  readonly held = new Watch({ begin: 10 * minute, end: 0 })
  readonly gone = new Watch({ begin: 0, end: 60 * minute })
  readonly expired = new Watch({ begin: 0, end: 60 * minute })
  /** The queues in which messages were refused because the chat is gone, or expired, since the last check, with the reasons. */
  readonly lost = { gone: new Map<string, CauseId>(), expired: new Map<string, undefined>() }
}

const known = new WeakMap<object, Watches>()

/**
 * Sends alerts about accounts that cannot send, targets that are paused, closed or gone, and expired messages. A target that is the only
 * receiver causes no alerts: they would not arrive, or cause further ones.
 */
export class Alerts implements Partial<Observer> {
  private readonly watches: Watches

  /** Alerts as set by `alertTo`; `undefined` without a valid receiver. */
  static to(setting: readonly string[], names: TargetNames, ctx: Context, logger: Log, warn: Warn): Alerts | undefined {
    const warnings: Text[] = []
    const recipients = setting.flatMap(text => {
      try {
        return [parseRecipient(text, names)]
      } catch (error) {
        warnings.push(say('alert-receiver-left-out', { reason: RelayError.from(error).said }))
        return []
      }
    })
    warn('alertTo', warnings)
    return recipients.length > 0 ? new Alerts(recipients, ctx, logger) : undefined
  }

  private constructor(private readonly recipients: readonly Recipient[], private readonly ctx: Context, private readonly logger: Log) {
    const app = unwrap(ctx.root)
    this.watches = known.get(app) ?? new Watches()
    known.set(app, this.watches)
  }

  ended(delivery: Delivery): void {
    if (delivery.door === alertDoor) return
    const { gone, expired } = this.watches.lost
    const cause = goneBecause(delivery)
    if (cause) gone.set(queueOf(delivery), cause)
    if (delivery.state === 'expired') expired.set(queueOf(delivery), undefined)
  }

  /** Checks for troubles every second until the plugin is disposed. */
  start(options: AlertOptions): void {
    this.ctx.setInterval(() => this.check(options), interval)
  }

  private check(options: AlertOptions): void {
    const { ctx, watches, recipients, logger } = this
    const { relay, bots } = options
    // A standby leaves alerts to the active relay.
    if (!relay.isActive) return
    const dispatchOptions = { ...options, ctx, recipients, logger }
    const now = performance.now()
    const told = (cause: CauseId): Localized<string> => language => explain(cause).in(language)
    const all = bots()
    const botsThat = (isIn: (status: string) => boolean): Present =>
      new Map(all.filter(({ status }) => isIn(status)).map(bot => [nameOf(bot), language => explain(bot.cause, bot.words)?.in(language)]))
    const isReported = (bot: string): boolean => watches.offline.isReported(bot) || watches.restricted.isReported(bot)
    const { gone, expired } = watches.lost
    const present: Readonly<Record<Kind, Present>> = {
      offline: botsThat(status => status !== 'online' && status !== 'restricted'),
      restricted: botsThat(status => status === 'restricted'),
      paused: new Map([...relay.failing()].map(([queue, failure]) => [queue, language => failure.reason.in(language)])),
      // A hold causes no alert of its own if an alert about its account was sent.
      held: new Map(relay.queues().flatMap(({ queue, bot, block }) =>
        block?.state === 'held' && !(causes[block.cause] !== 'chat-closed' && isReported(bot)) ? [[queue, told(block.cause)]] : [])),
      gone: new Map([...gone].map(([queue, cause]) => [queue, told(cause)])),
      expired,
    }
    const names = new Set(all.map(nameOf))
    // A removed bot is neither in trouble nor recovered.
    for (const watch of [watches.offline, watches.restricted]) watch.forget(name => !names.has(name))
    for (const kind of kinds) {
      const watch = watches[kind]
      const { begun, over } = watch.look([...present[kind].keys()].filter(name => !this.isOnlyRecipient(name)), now)
      if (begun.length > 0) {
        void dispatch(toAlert(kind, false, begun, now, present[kind]), dispatchOptions).then(hasLeft => {
          // The alert is repeated after a minute, or at once by the next instance if the plugin was disposed.
          if (!hasLeft) watch.markUnreported(begun, options.stop.aborted)
        })
      }
      if (over.length > 0) void dispatch(toAlert(kind, true, over, now, present[kind]), dispatchOptions)
    }
    gone.clear()
    expired.clear()
  }

  /** Whether the target of a queue is the only receiver of alerts. */
  private isOnlyRecipient(queue: string): boolean {
    const [only, other] = this.recipients
    if (!only || other || 'endpoint' in only) return false
    const { bot = '', target } = placeOf(queue)
    const own = platformOf(bot) ?? ''
    const isThere = ({ target: place, platform = own, selfId }: Address): boolean => (
      writeTarget(place) === target && platform === own && (selfId === undefined || bot === `${platform}:${selfId}`)
    )
    const [destination, ...others] = only.destinations
    return destination !== undefined && others.length === 0 && waysOf(destination).every(isThere)
  }
}

/** @throws RelayError */
function parseRecipient(text: string, names: TargetNames): Recipient {
  if (!/^https?:\/\//i.test(text)) return { destinations: parseDestinations(text, {}, names).list }
  const endpoint = parseEndpoint(text)
  if (!endpoint) throw new RelayError('bad-request', say('address-unreadable'))
  return { endpoint }
}

function toAlert(kind: Kind, isOver: boolean, troubles: readonly Trouble[], now: number, reasons: Present): Localized<Alert> {
  const start = Date.now() - now
  return language => ({
    kind, isOver,
    subjects: troubles.map(({ name, since, times }): Subject => {
      const reason = reasons.get(name)?.(language)
      return {
        ...kind === 'offline' || kind === 'restricted' ? { bot: name } : placeOf(name), since: start + since,
        ...reason !== undefined && { reason }, ...times > 0 && !isOver && { times },
      }
    }),
  })
}

function nameOf({ platform, self_id: selfId }: { platform: string, self_id: string }): string {
  return `${platform}:${selfId}`
}

/** The target and the bot of a queue, for an alert. */
function placeOf(queue: string): Pick<Subject, 'target' | 'bot'> {
  const { bot = '', target } = readQueue(queue) ?? {}
  return { ...target && { target: writeTarget(target) }, ...bot !== '' && { bot } }
}

/**
 * Sends an alert to the first receiver that accepts it; never throws. Logs a line for each attempted receiver.
 *
 * @returns whether a receiver has accepted the alert, or may still do so
 */
async function dispatch(alert: Localized<Alert>, options: DispatchOptions): Promise<boolean> {
  const { ctx, recipients, language, timeout, stop, logger } = options
  const { kind, isOver } = alert(language)
  const what = `alert ${kind}${isOver ? ', over' : ''}`
  for (const [index, recipient] of recipients.entries()) {
    const isLast = index === recipients.length - 1
    if ('endpoint' in recipient) {
      const failure = await postAlert(recipient.endpoint, toBody(alert(language), language), isLast, { http: httpOf(ctx), timeout, stop })
      if (failure === undefined) logger.info(say('alert-posted', { alert: what, origin: recipient.endpoint.origin }))
      else logger.warn(say('alert-not-posted', { alert: what, origin: recipient.endpoint.origin, failure }))
      if (failure === undefined) return true
    } else {
      const taken = await Promise.all(recipient.destinations.map(destination => {
        const { lang = language } = destination
        return submit(what, writeAlert(alert(lang), lang), destination, isLast, options)
      }))
      if (taken.includes(true)) return true
    }
  }
  return false
}

/** @returns whether the alert has arrived, may have arrived, or will still be sent after a stop */
async function submit(
  what: string, text: string, destination: Destination, isLast: boolean, options: DispatchOptions,
): Promise<boolean> {
  const { target, bot, route } = destination
  const { relay, logger } = options
  const id = uuid()
  const line = `${id} ${what} ${writeTarget(target)}`
  try {
    const expiresIn = isLast ? lifetime.last : lifetime.other
    const { delivery: { state } } = await relay.submit({
      // An alert waits only for the last receiver. It counts as sent once it has arrived.
      id, door: alertDoor, ...isLast && { deferred: { wait: expiresIn + minute } },
      request: { mode: 'single', target, bot, route, items: [{ type: 'text', text: printableLines(text) }], expiresIn },
    })
    logger.info(words(`${line} ${state}`))
    return state !== 'failed' && state !== 'expired'
  } catch (error) {
    const { code, logText } = RelayError.from(error)
    logger.warn(say('alert-failed', { line, reason: logText }))
    // Without the store the alert cannot wait, so it is sent directly.
    return isLast && code === 'store-down' ? submit(what, text, destination, false, options) : false
  }
}

/** `printable` for a text of several lines. */
function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n')
}
