import { v7 as uuid } from 'uuid'
import { RelayError } from '../../errors'
import type { Address, ParsedItem, Target } from '../../message/model'
import { platformOf, readTarget, writeTarget } from '../../message/target'
import { wordsOf } from '../delivery/about'
import type { Change, Delivery, State } from '../delivery/delivery'

type Awaitable<T> = T | Promise<T>

/** The position of what has none. All others are higher. */
export const noPosition = 0

/**
 * Keeps deliveries: in memory, or in the Koishi database. Where a method may give a promise, it rejects with the error of the database;
 * a store in memory answers at once and never fails.
 *
 * What waits in a queue has a position, a number that is higher than that of whatever was accepted before it; what does not wait for a
 * worker to fetch it (its caller waits, or it has ended) has none.
 */
export interface Store {
  /** Whether what it keeps outlives the process, so that each step has to be written down before the next one is made. */
  readonly isDurable: boolean

  /** Keeps a new delivery. A key that is taken makes it fail. */
  insert(delivery: Delivery, position: number, items: readonly ParsedItem[]): Awaitable<void>
  /**
   * Changes a delivery, also the object given.
   *
   * @param from the states in which it may be
   * @returns whether it was there in one of them; otherwise nothing is changed
   */
  update(delivery: Delivery, from: readonly State[], change: Change): Awaitable<boolean>
  /** The same where it has not changed since it was read, for who is not at work on it: others may be meanwhile. */
  amend(delivery: Delivery, from: readonly State[], change: Change): Awaitable<boolean>
  /** The same as `amend`, and gives it a position in its queue. */
  requeue(delivery: Delivery, from: readonly State[], change: Change, position: number): Awaitable<boolean>
  /** Removes a delivery of which nothing has ever left, and tells whether it did. */
  withdraw(id: string): Awaitable<boolean>
  /**
   * Removes a delivery of which nobody was told, as long as it waits. From then on it is neither sent nor found by its key, also where it
   * cannot be removed yet, which rejects.
   */
  discard(id: string): Awaitable<void>

  get(id: string): Awaitable<Delivery | undefined>
  findByKey(key: string): Awaitable<Delivery | undefined>
  /** Takes the key from the delivery that holds it. */
  releaseKey(key: string): Awaitable<void>
  /** The newest first. */
  list(filter: ListFilter): Awaitable<Delivery[]>
  /** A delivery with its items, where those were kept. */
  getQueued(id: string): Awaitable<QueuedDelivery | undefined>

  /** The queues in which something has a position. */
  queues(): Awaitable<WaitingQueue[]>
  /** The first that waits in a queue, up to this position. */
  next(queue: string, upTo: number): Awaitable<QueuedDelivery | undefined>
  /** One that has a position in this queue and had begun to leave, as before a crash. */
  interrupted(queue: string): Awaitable<QueuedDelivery | undefined>
  /** How many wait in a queue and have not begun to leave, and the highest position of all in it. */
  waiting(queue: string): Awaitable<Waiting>
  /** How many have a position in any queue, and since when the oldest waits. */
  backlog(): Awaitable<Backlog>
  /** Some of those with a position in this state whose time was over then. */
  overdue(state: 'queued' | 'sending', then: number): Awaitable<Delivery[]>
}

/** A delivery as a worker fetches it. */
export interface QueuedDelivery {
  delivery: Delivery
  position: number
  items: readonly ParsedItem[]
  /** Whether this process changed it last. */
  isOurs: boolean
}

export interface Waiting {
  count: number
  last: number
}

/** A queue in which something waits, and the bot that it needs. */
export interface WaitingQueue {
  queue: string
  /** `platform:selfId`. */
  bot: string
}

export interface Backlog {
  size: number
  oldest?: number
}

/** Which deliveries are listed. */
export interface ListFilter {
  /** Those in one of these states. */
  states?: readonly State[]
  /** Those to one of these, on its platform where it has one. */
  targets?: readonly (Target & Pick<Address, 'platform'>)[]
  /** The name of the key of its caller. */
  caller?: string
  /** What it came through: a door, or a kind of doors, such as `hooks`. */
  door?: string
  /** What its text has among its first characters. The case of ASCII letters does not count. */
  text?: string
  /** Only those accepted from this time on, and before that one, in milliseconds since the epoch by the machine's clock. */
  since?: number
  until?: number
  /** Only those older than the delivery with this ID. */
  before?: string
  limit: number
}

/** Whether a delivery is one of those that a filter asks for. */
export function matches({ id, state, target, bot, caller, door, about }: Delivery, filter: ListFilter): boolean {
  const { states, targets, since, until, text } = filter
  return (states === undefined || states.includes(state))
    && (targets === undefined || targets.some(({ kind, id, platform }) => target.kind === kind && target.id === id && isOn(platform, bot)))
    && (filter.caller === undefined || caller === filter.caller)
    && (filter.door === undefined || door === filter.door || door.startsWith(`${filter.door}/`))
    && (filter.before === undefined || id < filter.before)
    && (since === undefined || id >= lowestId(since))
    && (until === undefined || id < lowestId(until))
    && (text === undefined || lowerCase(wordsOf(about)).includes(lowerCase(text)))
}

/** Whether a bot is on a platform. One that was never found may have been on any. */
function isOn(platform: string | undefined, bot: string): boolean {
  return platform === undefined || (platformOf(bot) ?? platform) === platform
}

/** Of ASCII letters only: other texts may get longer. */
function lowerCase(text: string): string {
  return text.replace(/[A-Z]+/g, letters => letters.toLowerCase())
}

/** The lowest ID that a delivery accepted at this time can have, in milliseconds since the epoch by the machine's clock. */
export function lowestId(time: number): string {
  return uuid({ msecs: Math.max(Math.ceil(time), 0), seq: 0, random: new Uint8Array(16) })
}

/** The name of the queue in which messages to this target wait for one another. */
export function queueOf(bot: string, target: Target): string {
  return `${bot}/${writeTarget(target)}`
}

/** The bot and the target of a queue, `undefined` where it is none. */
export function readQueue(queue: string): { bot: string, target: Target } | undefined {
  const [, bot, written = ''] = /^(.*?)\/((?:group|private):.*)$/s.exec(queue) ?? []
  const target = readTarget(written)
  return bot === undefined || !target ? undefined : { bot, target }
}

/** @throws RelayError of this code for whatever the database throws */
export async function guard<T>(work: Promise<T> | T, code: 'store-down' | 'key-unknown' = 'store-down'): Promise<T> {
  try {
    return await work
  } catch (cause) {
    throw new RelayError(code, undefined, { cause })
  }
}
