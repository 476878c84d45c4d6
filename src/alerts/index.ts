import type { Context, Logger } from 'koishi'
import { v7 as uuid } from 'uuid'
import { RelayError } from '../errors'
import { parseEndpoint, type Endpoint } from '../lib/endpoint'
import { unwrap } from '../lib/koishi'
import type { Language } from '../lib/language'
import { printable } from '../lib/log'
import { causes, inChinese, type CauseId } from '../message/causes'
import type { Address, Destination, TargetNames } from '../message/model'
import { parseDestinations, platformOf, waysOf, writeTarget } from '../message/target'
import { goneBecause, type Delivery } from '../relay/delivery'
import { alertDoor, laneOf, readLane, type Observer, type Relay } from '../relay/relay'
import { postAlert, toBody } from './post'
import { kinds, writeAlert, type Alert, type Kind, type Subject } from './texts'
import { Watch, type Trouble } from './watch'

/** The time between two looks, in milliseconds. */
const interval = 1_000
const minute = 60_000
/** How long an alert to the last receiver may wait where that is a target, and to one before it, in milliseconds. */
const lifetime = { last: 10 * minute, other: minute / 4 }

/** Where alerts go. */
type Recipient = { endpoint: Endpoint } | { destinations: readonly Destination[] }

/** What alerts need of the plugin. */
export interface AlertOptions {
  relay: Pick<Relay, 'submit' | 'failing' | 'lanes' | 'isActive'>
  /** `platform:selfId` of each bot, its state, and why it cannot send. */
  bots: () => readonly { platform: string, self_id: string, status: string, cause?: string }[]
  language: Language
  /** How long a post may take, in milliseconds. */
  timeout: number
  /** Aborted when the relay stops. */
  stop: AbortSignal
}

/** The same, and who is told. */
interface Telling extends AlertOptions {
  recipients: readonly Recipient[]
  logger: Logger
}

/** Says something in the language of its reader. */
type InLanguage<T> = (language: Language) => T

/** What there is of one kind of trouble now: why, by the name of its subject. */
type Present = ReadonlyMap<string, InLanguage<string | undefined> | undefined>

/** The troubles seen and told so far. They belong to the app, so that a reload of the plugin tells none again. */
class Watches {
  readonly offline = new Watch({ begin: minute / 2, end: minute, again: 60 * minute })
  readonly restricted = new Watch({ begin: 0, end: 0, again: 60 * minute })
  readonly paused = new Watch({ begin: 10_000, end: 5 * minute })
  readonly held = new Watch({ begin: 10 * minute, end: 0 })
  readonly gone = new Watch({ begin: 0, end: 60 * minute })
  readonly expired = new Watch({ begin: 0, end: 60 * minute })
  /** The queues in which messages have failed for good, or expired, since the last look: why, by their names. */
  readonly lost = { gone: new Map<string, CauseId>(), expired: new Map<string, undefined>() }
}

const known = new WeakMap<object, Watches>()

/**
 * Sends alerts about accounts that cannot send, targets that are paused, closed or gone, and expired messages. Where there is one receiver
 * only, its targets cause none: it would not arrive, or lead to further ones.
 */
export class Alerts implements Partial<Observer> {
  private readonly watches: Watches

  /** The alerts that the setting `alertTo` asks for, `undefined` where nobody can be told. */
  static to(setting: readonly string[], names: TargetNames, ctx: Context, logger: Logger): Alerts | undefined {
    const recipients = setting.flatMap(text => {
      try {
        return [parseRecipient(text, names)]
      } catch (error) {
        logger.warn('%s', `a receiver in alertTo is left out: ${RelayError.from(error).message}`)
        return []
      }
    })
    return recipients.length > 0 ? new Alerts(recipients, ctx, logger) : undefined
  }

  private constructor(private readonly recipients: readonly Recipient[], private readonly ctx: Context, private readonly logger: Logger) {
    const app = unwrap(ctx.root)
    this.watches = known.get(app) ?? new Watches()
    known.set(app, this.watches)
  }

  ended(delivery: Delivery): void {
    if (delivery.door === alertDoor) return
    const { gone, expired } = this.watches.lost
    const cause = goneBecause(delivery)
    if (cause) gone.set(laneOf(delivery), cause)
    if (delivery.state === 'expired') expired.set(laneOf(delivery), undefined)
  }

  /** Looks for troubles every second until the plugin is disposed. */
  start(options: AlertOptions): void {
    this.ctx.setInterval(() => this.look(options), interval)
  }

  private look(options: AlertOptions): void {
    const { watches, recipients, logger } = this
    const { relay, bots } = options
    // A standby leaves alerts to the relay that works the database.
    if (!relay.isActive) return
    const telling = { ...options, recipients, logger }
    const now = performance.now()
    const explain = (id: CauseId): InLanguage<string> => language => causes[id][language === 'zh-CN' ? 'zh' : 'en']
    const all = bots()
    const botsThat = (isIn: (status: string) => boolean): Present =>
      new Map(all.filter(({ status }) => isIn(status)).map(bot => {
        const { cause } = bot
        return [nameOf(bot), language => cause !== undefined && language === 'zh-CN' ? inChinese(cause) : cause]
      }))
    const isTold = (bot: string): boolean => watches.offline.hasTold(bot) || watches.restricted.hasTold(bot)
    const { gone, expired } = watches.lost
    const present: Readonly<Record<Kind, Present>> = {
      offline: botsThat(status => status !== 'online' && status !== 'restricted'),
      restricted: botsThat(status => status === 'restricted'),
      paused: new Map([...relay.failing()].map(([queue, reason]) => [queue, language => language === 'zh-CN' ? inChinese(reason) : reason])),
      // Where its account was told, what waits for it is not worth an alert of its own.
      held: new Map(relay.lanes().flatMap(({ queue, bot, hold }) =>
        hold && !(causes[hold.cause].about !== 'chat-closed' && isTold(bot)) ? [[queue, explain(hold.cause)]] : [])),
      gone: new Map([...gone].map(([queue, cause]) => [queue, explain(cause)])),
      expired,
    }
    const names = new Set(all.map(nameOf))
    // One that was removed is neither in trouble nor well again.
    for (const watch of [watches.offline, watches.restricted]) watch.forget(name => !names.has(name))
    for (const kind of kinds) {
      const watch = watches[kind]
      const { begun, over } = watch.look([...present[kind].keys()].filter(name => !this.isOwn(name)), now)
      if (begun.length > 0) {
        void tell(toAlert(kind, false, begun, now, present[kind]), telling).then(hasLeft => {
          // It is told again a minute later; where the plugin was disposed first, by what is loaded next.
          if (!hasLeft) watch.takeBack(begun, options.stop.aborted)
        })
      }
      if (over.length > 0) void tell(toAlert(kind, true, over, now, present[kind]), telling)
    }
    gone.clear()
    expired.clear()
  }

  /** Whether a queue leads to the only one who could be told of it. */
  private isOwn(queue: string): boolean {
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
  if (!endpoint) throw new RelayError('bad-request', 'the address cannot be read')
  return { endpoint }
}

function toAlert(kind: Kind, isOver: boolean, troubles: readonly Trouble[], now: number, reasons: Present): InLanguage<Alert> {
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
  const { bot = '', target } = readLane(queue) ?? {}
  return { ...target && { target: writeTarget(target) }, ...bot !== '' && { bot } }
}

/**
 * Tells an alert to the first receiver that takes it; never throws. The log has a line for each one tried.
 *
 * @returns whether one has taken it, or still may
 */
async function tell(alert: InLanguage<Alert>, telling: Telling): Promise<boolean> {
  const { recipients, language, timeout, stop, logger } = telling
  const { kind, isOver } = alert(language)
  const what = `alert ${kind}${isOver ? ', over' : ''}`
  for (const [index, recipient] of recipients.entries()) {
    const isLast = index === recipients.length - 1
    if ('endpoint' in recipient) {
      const failure = await postAlert(recipient.endpoint, toBody(alert(language), language), isLast, timeout, stop)
      if (failure === undefined) logger.info('%s', `${what}: posted to ${recipient.endpoint.origin}`)
      else logger.warn('%s', `${what}: not posted to ${recipient.endpoint.origin}: ${failure}`)
      if (failure === undefined) return true
    } else {
      const taken = await Promise.all(recipient.destinations.map(destination => {
        const { lang = language } = destination
        return submit(what, writeAlert(alert(lang), lang), destination, isLast, telling)
      }))
      if (taken.includes(true)) return true
    }
  }
  return false
}

/** @returns whether it has arrived, or may have, or still will after a stop */
async function submit(
  what: string, text: string, destination: Destination, isLast: boolean, telling: Telling,
): Promise<boolean> {
  const { target, bot, route } = destination
  const { relay, logger } = telling
  const id = uuid()
  const line = (outcome: string): string => printable(`${id} ${what} ${writeTarget(target)} ${outcome}`)
  try {
    const expiresIn = isLast ? lifetime.last : lifetime.other
    const { delivery: { state } } = await relay.submit({
      // Where somebody else can be told, it is not left to wait. Otherwise it counts as told once it has arrived.
      id, door: alertDoor, ...isLast && { deferred: { wait: expiresIn + minute, inMemory: expiresIn + minute } },
      request: { mode: 'single', target, bot, route, items: [{ type: 'text', text: printableLines(text) }], expiresIn },
    })
    logger.info('%s', line(state))
    return state !== 'failed' && state !== 'expired'
  } catch (error) {
    const { code, logText } = RelayError.from(error)
    logger.warn('%s', line(`failed: ${logText}`))
    // What cannot be written down does not wait.
    return isLast && code === 'store-down' ? submit(what, text, destination, false, telling) : false
  }
}

/** `printable` for a text of several lines. */
function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n')
}
