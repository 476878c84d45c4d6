import type { Context, Logger } from 'koishi'
import { v7 as uuid } from 'uuid'
import { RelayError } from '../errors'
import { parseEndpoint, type Endpoint } from '../lib/endpoint'
import type { InFlight } from '../lib/in-flight'
import type { Language } from '../lib/language'
import { printable } from '../lib/log'
import { unwrap } from '../lib/unwrap'
import { parseDestinations } from '../message/destination'
import type { Destination, TargetNames } from '../message/model'
import { writeTarget } from '../message/target'
import type { Delivery } from '../relay/delivery'
import { laneOf, readLane, type Observer, type Relay } from '../relay/relay'
import { postAlert, toBody } from './post'
import { writeAlert, type Alert, type Kind, type Subject } from './texts'
import { Watch, type Trouble } from './watch'

/** The door by which alerts are submitted. */
export const alertDoor = 'alert'

/** The time between two looks, in milliseconds. */
const interval = 1_000
const minute = 60_000
/** How long an alert to a target may wait, in milliseconds. */
const lifetime = 10 * minute

/** Where alerts go. */
type Recipient = { endpoint: Endpoint } | { destinations: readonly Destination[] }

/** What alerts need of the plugin. */
export interface AlertOptions {
  relay: Pick<Relay, 'submit' | 'failing' | 'isActive'>
  /** `platform:selfId` of each bot, and its state. */
  bots: () => readonly { platform: string, self_id: string, status: string }[]
  language: Language
  inFlight: InFlight
  /** How long a post may take, in milliseconds. */
  timeout: number
  /** Aborted when the relay stops. */
  stop: AbortSignal
}

/** The same, and the recipient. */
interface Telling extends AlertOptions {
  recipient: Recipient
  logger: Logger
}

/** The troubles seen and told so far. They belong to the app, so that a reload of the plugin tells none again. */
class Watches {
  readonly paused = new Watch({ begin: 10_000, end: 5 * minute })
  readonly offline = new Watch({ begin: 5 * minute, end: minute })
  readonly expired = new Watch({ begin: 0, end: 60 * minute })
  /** The queues whose messages have expired since the last look, by their names. */
  readonly dropped = new Set<string>()
}

const known = new WeakMap<object, Watches>()

/**
 * Sends alerts about paused targets, offline bots and expired messages. The targets of the alerts themselves cause none: it would not
 * arrive, or lead to further ones.
 */
export class Alerts implements Partial<Observer> {
  private readonly watches: Watches

  /** The alerts that the setting `alertTo` asks for, `undefined` where it is empty or malformed. */
  static to(setting: string, names: TargetNames, ctx: Context, logger: Logger): Alerts | undefined {
    if (setting === '') return
    try {
      return new Alerts(parseRecipient(setting, names), ctx, logger)
    } catch (error) {
      logger.warn('%s', `no alerts are sent, because alertTo cannot be used: ${RelayError.from(error).message}`)
    }
  }

  private constructor(private readonly recipient: Recipient, private readonly ctx: Context, private readonly logger: Logger) {
    const app = unwrap(ctx.root)
    this.watches = known.get(app) ?? new Watches()
    known.set(app, this.watches)
  }

  ended({ state, door, bot, target }: Delivery): void {
    if (state === 'expired' && door !== alertDoor) this.watches.dropped.add(laneOf({ bot, target }))
  }

  /** Looks for troubles every second until the plugin is disposed. */
  start(options: AlertOptions): void {
    this.ctx.setInterval(() => this.look(options), interval)
  }

  private look(options: AlertOptions): void {
    const { paused, offline, expired, dropped } = this.watches
    const { recipient, logger } = this
    const { relay, bots } = options
    // A standby leaves alerts to the relay that works the database.
    if (!relay.isActive) return
    const telling = { ...options, recipient, logger }
    const now = performance.now()
    const own = new Set('destinations' in recipient ? recipient.destinations.map(({ target }) => writeTarget(target)) : [])
    const failing = relay.failing().filter(queue => !own.has(placeOf(queue).target ?? ''))
    const all = bots()
    const names = new Set(all.map(nameOf))
    // One that was removed is neither offline nor online again.
    offline.forget(name => !names.has(name))
    const news = [
      ['paused', paused, failing],
      ['offline', offline, all.filter(({ status }) => status !== 'online').map(nameOf)],
      ['expired', expired, dropped],
    ] as const
    for (const [kind, watch, present] of news) {
      const { begun, over } = watch.look(present, now)
      if (begun.length > 0) {
        void tell(toAlert(kind, false, begun, now), telling).then(hasLeft => {
          // The plugin was disposed first: what is loaded next tells it.
          if (!hasLeft) watch.takeBack(begun)
        })
      }
      if (over.length > 0) void tell(toAlert(kind, true, over, now), telling)
    }
    dropped.clear()
  }
}

/** @throws RelayError */
function parseRecipient(text: string, names: TargetNames): Recipient {
  if (!/^https?:\/\//i.test(text)) return { destinations: parseDestinations(text.split(',').map(word => word.trim()), true, {}, names).list }
  const endpoint = parseEndpoint(text)
  if (!endpoint) throw new RelayError('bad-request', 'the address cannot be read')
  return { endpoint }
}

function toAlert(kind: Kind, isOver: boolean, troubles: readonly Trouble[], now: number): Alert {
  const subjects = troubles.map(({ name, since }): Subject => ({
    ...kind === 'offline' ? { bot: name } : placeOf(name), since: Date.now() - (now - since),
  }))
  return { kind, isOver, subjects }
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
 * Sends an alert; never throws. The log has a line for each recipient.
 *
 * @returns `false` where the stop of the plugin ended its attempts
 */
async function tell(alert: Alert, telling: Telling): Promise<boolean> {
  const { recipient, language, timeout, stop, logger } = telling
  const what = `alert ${alert.kind}${alert.isOver ? ', over' : ''}`
  if ('endpoint' in recipient) {
    const failure = await postAlert(recipient.endpoint, toBody(alert, language), timeout, stop)
    if (failure === undefined) logger.info('%s', `${what}: posted to ${recipient.endpoint.origin}`)
    else logger.warn('%s', `${what}: not posted to ${recipient.endpoint.origin}: ${failure}`)
    return failure === undefined || !stop.aborted
  }
  const text = writeAlert(alert, language)
  for (const destination of recipient.destinations) await submit(what, text, destination, telling)
  return true
}

async function submit(what: string, text: string, { target, bot }: Destination, { relay, inFlight, logger }: Telling): Promise<void> {
  const id = uuid()
  const line = (outcome: string): string => printable(`${id} ${what} ${writeTarget(target)} ${outcome}`)
  let leave: (() => void) | undefined
  try {
    leave = inFlight.enter()
    const { delivery } = await relay.submit({
      id, door: alertDoor, deferred: { wait: 0, inMemory: 0 },
      request: { mode: 'single', target, bot, items: [{ type: 'text', text: printableLines(text) }], expiresIn: lifetime },
    })
    logger.info('%s', line(delivery.state))
  } catch (error) {
    logger.warn('%s', line(`failed: ${RelayError.from(error).logText}`))
  } finally {
    leave?.()
  }
}

/** `printable` for a text of several lines. */
function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n')
}
