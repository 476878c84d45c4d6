import { h, type Bot, type MessageEncoder, type Universal } from 'koishi'
import { setTimeout as delay } from 'node:timers/promises'
import { causes, type CauseId } from '../message/causes'
import type { Target } from '../message/model'
import { fieldsOf } from '../message/parse'
import { breakTags } from './adapters'
import { classifyThrown, cleanWording } from './failure'
import { toText } from './incoming'
import {
  announceSend, announceSent, createEncoder, createSession, isHeard, mayBeChanged, partlyArrived, render, toElement, type BotAccount,
  type SendSession,
} from './koishi'
import { longestLimit, SendError, type HistoryPage, type Limit, type LoadedItem, type Message, type Receipt } from './port'

/*
 * Platforms with an HTTP API that the relay calls itself, through the HTTP client of the adapter and with its credentials: the adapters
 * lose what the platform answers.
 */

/** What is used of Koishi's HTTP client. */
type Client = <T>(method: string, url: string, config: {
  data?: object | undefined
  headers?: Record<string, string>
  /** In milliseconds; 0 for none. */
  timeout: number
  validateStatus: () => true
  responseType: (response: Response) => Promise<T>
}) => Promise<{ status: number, headers: Headers, data: T }>

/** The HTTP client of an adapter's bot, which knows the address and the credentials, or of a context. @throws SendError `unsent` */
export function clientOf(owner: object): Client {
  const { http } = fieldsOf(owner)
  if (!isClient(http)) throw new SendError('unsent', 'the adapter is not ready')
  return http
}

function isClient(value: unknown): value is Client {
  return typeof value === 'function'
}

/** What a platform's API answered. */
export interface WebAnswer {
  status: number
  /** The whole body. */
  text: string
  /** JSON, parsed; `undefined` for anything else. */
  body: unknown
  headers: Headers
}

/** What an answer of failure says. */
export interface Refusal {
  /** The platform's own words. */
  words?: string | undefined
  causeId?: CauseId | undefined
  limit?: Limit | undefined
}

/**
 * Makes a request to the platform of a bot.
 *
 * @param path behind the address of the API
 * @param data sent as JSON, or as it is where it is a form
 * @throws SendError `unsent` where no connection was made, `unanswered` where there was no answer
 */
export async function ask(
  bot: Bot, method: string, path: string, data?: object, headers: Record<string, string> = {},
): Promise<WebAnswer> {
  try {
    // The attempt has a time limit of its own, and an answer that comes later counts as well.
    const { status, headers: answered, data: text } = await clientOf(bot)(method, path, {
      data, headers, timeout: 0, validateStatus: () => true, responseType: response => response.text(),
    })
    return { status, headers: answered, text, body: parseJson(text) }
  } catch (error) {
    throw classifyThrown(error)
  }
}

/** A text parsed as JSON; `undefined` for anything else. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The wait that `Retry-After` names, in milliseconds: seconds, or a date (RFC 9110, section 10.2.3); `undefined` for none. */
export function retryAfterOf(headers: Headers): number | undefined {
  const given = headers.get('retry-after') ?? ''
  const wait = /^[\d.]+$/.test(given) ? Number(given) * 1000 : Date.parse(given) - Date.now()
  return wait > 0 ? wait : undefined
}

/**
 * The failure of a call with an answer: a server that failed may have carried it out; what a platform refuses, it would refuse again.
 *
 * @param status of HTTP, or what it would be where the platform tells failures by a code
 */
export function toFailure(status: number, { words = '', causeId, limit }: Refusal): SendError {
  const shown = cleanWording(words) ?? `HTTP ${status}`
  if (limit) return new SendError('unsent', shown, { causeId: 'rate-limited', limit })
  // A server that waited too long for the request may have read it all the same (RFC 9110, section 15.5.9).
  if (status >= 500 || status === 408) return new SendError('unanswered', shown)
  const isAccount = causeId !== undefined && causes[causeId].about === 'account'
  return isAccount ? new SendError('unsent', shown, { causeId }) : new SendError('refused', shown, { causeId, isFinal: true })
}

/** The failure of a call whose answer is no success and no failure: it may have been carried out. */
export function unreadable(): SendError {
  return new SendError('unanswered', 'the answer of the platform cannot be read')
}

/** What a message that is there cannot become. */
export function unchangeable(why: string): SendError {
  return new SendError('refused', `the message that is there cannot be changed: ${why}`, { isFinal: true })
}

/** The only one of the parts of a changed message. @throws SendError `refused` where there are more */
export function onlyPart<T>(parts: readonly T[]): T {
  const [part] = parts
  if (part === undefined || parts.length > 1) throw unchangeable('it would not be one message')
  return part
}

/** One call that sends one message. @throws SendError */
export type Call = () => Promise<Receipt>

/** A message of a platform that is called directly. It may take several calls, such as for a long text. */
export abstract class WebMessage implements Message {
  abstract readonly likeness: string
  /** What other plugins and the adapter's encoder learn of the chat besides its channel, such as its guild. */
  protected readonly event: Partial<Universal.Event> = {}
  /** As `idempotentFor`, for the calls that the relay makes itself. */
  protected readonly repeatableFor: number = 0
  /** Whether another plugin has changed the message, or may have done so before a restart: nothing knows the calls of the adapter again. */
  private isForeign: boolean
  /** A further round goes on with what the one before it has begun, such as fetching a file. */
  private calls: Promise<readonly Call[]> | undefined

  /** @param changed the ID of the message that becomes these items; absent for a new message */
  constructor(
    protected readonly account: BotAccount, protected readonly target: Target, protected readonly items: readonly LoadedItem[],
    protected readonly changed?: string,
  ) {
    this.isForeign = mayBeChanged(account.bot)
  }

  get idempotentFor(): number {
    // The same change a second time changes nothing.
    if (this.changed !== undefined) return Infinity
    return this.isForeign ? 0 : this.repeatableFor
  }

  /** The ID of the chat, as the adapter names its channels. @throws SendError */
  protected abstract channel(): Promise<string>

  /**
   * Gets ready what can be before anything is sent: files are read, and uploaded where that sends nothing.
   *
   * @returns at least one call, in their order
   * @throws SendError
   */
  protected abstract prepare(channelId: string): Promise<readonly Call[]>

  /**
   * Tells the adapter's encoder the rest of the place, where the channel is not all of it.
   *
   * @throws SendError
   */
  protected adapt?(encoder: MessageEncoder): Promise<void>

  async send(begin: () => void): Promise<Receipt> {
    const call = { hasBegun: false }
    const leave = (): void => {
      begin()
      call.hasBegun = true
    }
    try {
      const { account: { bot }, target: { kind }, items } = this
      const channelId = await this.channel()
      const elements = items.map(toElement)
      const session = isHeard(bot) ? createSession(bot, channelId, kind === 'private', this.event) : undefined
      this.isForeign = session !== undefined && isChanged(elements, await announceSend(bot, session, elements))
      if (this.isForeign && this.changed !== undefined) throw unchangeable('another plugin made something else of it')
      if (session && this.isForeign) return await this.encode(channelId, session, leave)
      const calls = await (this.calls ??= this.prepare(channelId).catch((error: unknown) => {
        this.calls = undefined
        throw error
      }))
      if (!this.account.isOnline) throw new SendError('unsent', this.account.health.cause)
      leave()
      const messageIds = await callAll(calls, this.idempotentFor > 0)
      if (session) announceSent(bot, session, messageIds[0] ?? '')
      return { messageIds }
    } catch (error) {
      // What the adapter throws, it may have thrown after its call.
      const failure = classifyThrown(error, call.hasBegun ? 'unanswered' : 'refused')
      // What only prepares a message sends nothing, whatever became of it.
      throw call.hasBegun || failure.outcome !== 'unanswered' ? failure : new SendError('unsent', failure.wording, { cause: failure.cause })
    }
  }

  /** What another plugin has made of a message, only the adapter's encoder knows how to send. */
  private async encode(channelId: string, session: SendSession, begin: () => void): Promise<Receipt> {
    const encoder = createEncoder(this.account.bot, channelId)
    if (!encoder) throw new SendError('suppressed')
    // Adapters leave texts live in which tags mention users, and those of the caller are among them.
    session.elements = h.transform(session.elements ?? [], { text: attrs => h.text(breakTags(toText(attrs.content))) })
    encoder.session = session
    await this.adapt?.(encoder)
    await encoder.prepare()
    begin()
    const results = await render(encoder)
    if (results.length === 0) throw new SendError('unanswered', 'the adapter does not say whether the message was sent')
    return { messageIds: results.filter(Boolean) }
  }

  history(count: number): Promise<HistoryPage | undefined>
  history(): Promise<HistoryPage | undefined> {
    return Promise.resolve(undefined)
  }
}

function isChanged(elements: readonly h[], announced: readonly h[]): boolean {
  return announced.length !== elements.length || announced.some((each, index) => each !== elements[index])
}

/** @param isRepeatable whether a further round does not repeat the part that has arrived */
async function callAll(calls: readonly Call[], isRepeatable: boolean): Promise<string[]> {
  const ids: string[] = []
  for (const [index, call] of calls.entries()) {
    try {
      const { messageIds } = await call().catch(async (error: unknown) => {
        const limit = index > 0 && error instanceof SendError ? error.limit : undefined
        // A limit of the account holds its other chats as well, so the relay has to know of it.
        const wait = limit?.scope === 'chat' ? limit.after : Infinity
        if (wait > longestLimit) throw error
        await delay(wait)
        return call()
      })
      ids.push(...messageIds)
    } catch (error) {
      const isRefused = error instanceof SendError && error.outcome === 'refused'
      throw index === 0 ? error : partlyArrived(error, isRefused || !isRepeatable)
    }
  }
  return ids
}
