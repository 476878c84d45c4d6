import { h, type MessageEncoder, type Universal } from 'koishi'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { toText } from '../lib/shape'
import type { Target } from '../message/model'
import { breakTags } from './adapters'
import { classifyThrown } from './failure'
import {
  announceSend, announceSent, createEncoder, createSession, partlyArrived, render, toElement, type BotAccount, type SendSession,
} from './koishi'
import { longestLimit, SendError, type LoadedItem, type Message, type Receipt } from './port'

/** One call that sends one platform message. @throws SendError */
export type Call = () => Promise<Receipt>

/**
 * A message that the relay sends by calls of its own, because adapters lose the answers of platforms. The adapter's encoder is used only
 * for elements of other plugins that these calls cannot express.
 */
export abstract class BotMessage<A extends BotAccount = BotAccount> implements Message {
  abstract readonly likeness: string
  abstract readonly idempotentFor: number
  /** Details of the chat besides its channel, such as its guild, for other plugins and the adapter's encoder. */
  protected readonly event: Partial<Universal.Event> = {}
  /** Whether the relay announces a sent message to other plugins. Some adapters do that themselves, on the platform's report. */
  protected readonly isAnnounced: boolean = true

  constructor(protected readonly account: A, protected readonly target: Target, protected readonly items: readonly LoadedItem[]) {}

  /** The adapter's ID of the chat. @throws SendError */
  protected abstract channel(): Promise<string>

  /**
   * The calls that send the message, at least one, in order; `undefined` if only the adapter's encoder can send it.
   *
   * @param elements the message after other plugins
   * @param isForeign whether other plugins changed it
   * @throws SendError
   */
  protected abstract calls(channelId: string, elements: readonly h[], isForeign: boolean): Promise<readonly Call[] | undefined>

  protected toElements(): h[] {
    return this.items.map(toElement)
  }

  /** Completes the place in the adapter's encoder, if the channel is not all of it. @throws SendError */
  protected adapt?(encoder: MessageEncoder): Promise<void>

  async send(begin: () => void): Promise<Receipt> {
    const { account, account: { bot }, target: { kind } } = this
    const call = { hasBegun: false }
    const start = (): void => {
      if (!account.isOnline) throw new SendError('unsent', account.health.cause)
      begin()
      call.hasBegun = true
    }
    try {
      const channelId = await this.channel()
      const session = account.isHeard ? createSession(bot, channelId, kind === 'private', this.event) : undefined
      const elements = session ? await announceSend(account, session, this.toElements()) : this.toElements()
      // Plugins may also change elements in place.
      const isForeign = session !== undefined && !isDeepStrictEqual(elements, this.toElements())
      const calls = await this.calls(channelId, elements, isForeign)
      if (session && !calls) return await this.encode(channelId, session, start)
      start()
      const messageIds = await this.makeAll(calls ?? [])
      if (session && this.isAnnounced) announceSent(account, session, messageIds[0] ?? '')
      return { messageIds }
    } catch (error) {
      // The adapter may have thrown after its call.
      const failure = classifyThrown(error, call.hasBegun ? 'unanswered' : 'refused')
      // A failed preparation has sent nothing.
      throw call.hasBegun || failure.outcome !== 'unanswered' ? failure : new SendError('unsent', failure.wording, { cause: failure.cause })
    }
  }

  private async makeAll(calls: readonly Call[]): Promise<string[]> {
    const ids: string[] = []
    for (const [index, call] of calls.entries()) {
      try {
        const { messageIds } = await (index === 0 ? call() : pastLimit(call))
        ids.push(...messageIds)
      } catch (error) {
        const isRefused = error instanceof SendError && error.outcome === 'refused'
        // If calls can be repeated, a further round makes only the missing ones.
        throw index === 0 ? error : partlyArrived(error, isRefused || this.idempotentFor === 0)
      }
    }
    return ids
  }

  /** Sends the elements of the session with the adapter's encoder. */
  protected async encode(channelId: string, session: SendSession, begin: () => void): Promise<Receipt> {
    const encoder = createEncoder(this.account.bot, channelId)
    if (!encoder) throw new SendError('suppressed')
    // Adapters do not escape tags that mention users, and the caller's texts may contain some.
    session.elements = h.transform(session.elements ?? [], { text: attrs => h.text(breakTags(toText(attrs.content))) })
    encoder.session = session
    await this.adapt?.(encoder)
    await encoder.prepare()
    begin()
    const results = await render(encoder)
    if (results.length === 0) throw new SendError('unanswered', 'the adapter does not say whether the message was sent')
    return { messageIds: results.filter(Boolean) }
  }
}

/** A message that is prepared once, and sent like that unless another plugin changes it. */
export abstract class WebMessage<A extends BotAccount = BotAccount> extends BotMessage<A> {
  /** As `idempotentFor`, if no other plugin has changed the message. */
  protected readonly repeatableFor: number = 0
  /** Whether another plugin has changed the message, or may have done so before a restart. */
  private isForeign: boolean
  private prepared: Promise<readonly Call[]> | undefined

  /** @param changed the ID of the message to change; absent for a new one */
  constructor(account: A, target: Target, items: readonly LoadedItem[], protected readonly changed?: string) {
    super(account, target, items)
    this.isForeign = account.mayBeChanged
  }

  get idempotentFor(): number {
    // A repeated change is harmless.
    if (this.changed !== undefined) return Infinity
    return this.isForeign ? 0 : this.repeatableFor
  }

  /** The ID of the message to reply to. */
  protected get answered(): string | undefined {
    return this.items.find(item => item.type === 'reply')?.messageId
  }

  /**
   * Prepares the message as far as possible without sending: reads files, and uploads them if that sends nothing.
   *
   * @returns as `calls`
   * @throws SendError
   */
  protected abstract prepare(channelId: string): Promise<readonly Call[]>

  protected async calls(channelId: string, _elements: readonly h[], isForeign: boolean): Promise<readonly Call[] | undefined> {
    this.isForeign = isForeign
    if (isForeign && this.changed !== undefined) throw unchangeable('another plugin made something else of it')
    if (isForeign) return
    // A further round continues the preparation of the one before, such as a download.
    return this.prepared ??= this.prepare(channelId).catch((error: unknown) => {
      this.prepared = undefined
      throw error
    })
  }
}

/** Makes a call, and repeats it after a short rate limit of its chat. A limit of the account is for the core, as it concerns all chats. */
async function pastLimit(call: Call): Promise<Receipt> {
  try {
    return await call()
  } catch (error) {
    const limit = error instanceof SendError ? error.limit : undefined
    if (limit?.scope !== 'chat' || limit.after > longestLimit) throw error
    await delay(limit.after)
    return call()
  }
}

function unchangeable(why: string): SendError {
  return new SendError('refused', `the message that is there cannot be changed: ${why}`, { isFinal: true })
}

/** The only part of a changed message. @throws SendError `refused` if there are more */
export function onlyPart<T>(parts: readonly T[]): T {
  const [part] = parts
  if (part === undefined || parts.length > 1) throw unchangeable('it would not be one message')
  return part
}
