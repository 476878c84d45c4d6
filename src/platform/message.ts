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
 * A message that the relay sends by calls of its own, because adapters lose what the platform answers. The encoder of the adapter sends
 * what another plugin has made of a message, where nothing else can.
 */
export abstract class BotMessage<A extends BotAccount = BotAccount> implements Message {
  abstract readonly likeness: string
  abstract readonly idempotentFor: number
  /** What other plugins and the adapter's encoder learn of the chat besides its channel, such as its guild. */
  protected readonly event: Partial<Universal.Event> = {}
  /** Whether the relay tells other plugins of a message that was sent: some adapters do so when the platform reports it. */
  protected readonly isAnnounced: boolean = true

  constructor(protected readonly account: A, protected readonly target: Target, protected readonly items: readonly LoadedItem[]) {}

  /** The ID of the chat, as the adapter names its channels. @throws SendError */
  protected abstract channel(): Promise<string>

  /**
   * The calls that send the message, at least one, in their order; `undefined` where only the adapter's encoder can send it.
   *
   * @param elements as other plugins have made them
   * @param isForeign whether that is something else than the items
   * @throws SendError
   */
  protected abstract calls(channelId: string, elements: readonly h[], isForeign: boolean): Promise<readonly Call[] | undefined>

  protected toElements(): h[] {
    return this.items.map(toElement)
  }

  /** Tells the adapter's encoder the rest of the place, where the channel is not all of it. @throws SendError */
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
      // Plugins change elements in place, too.
      const isForeign = session !== undefined && !isDeepStrictEqual(elements, this.toElements())
      const calls = await this.calls(channelId, elements, isForeign)
      if (session && !calls) return await this.encode(channelId, session, start)
      start()
      const messageIds = await this.makeAll(calls ?? [])
      if (session && this.isAnnounced) announceSent(account, session, messageIds[0] ?? '')
      return { messageIds }
    } catch (error) {
      // What the adapter throws, it may have thrown after its call.
      const failure = classifyThrown(error, call.hasBegun ? 'unanswered' : 'refused')
      // What only prepares a message sends nothing, whatever became of it.
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
        // A further round of calls that can be repeated makes only what is missing.
        throw index === 0 ? error : partlyArrived(error, isRefused || this.idempotentFor === 0)
      }
    }
    return ids
  }

  /** Sends the elements of the session with the adapter's encoder. */
  protected async encode(channelId: string, session: SendSession, begin: () => void): Promise<Receipt> {
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
}

/** A message that is made ready once, and sent as it is unless another plugin makes something else of it. */
export abstract class WebMessage<A extends BotAccount = BotAccount> extends BotMessage<A> {
  /** As `idempotentFor`, where no other plugin has changed the message. */
  protected readonly repeatableFor: number = 0
  /** Whether another plugin has changed the message, or may have done so before a restart. */
  private isForeign: boolean
  private prepared: Promise<readonly Call[]> | undefined

  /** @param changed the ID of the message that becomes these items; absent for a new message */
  constructor(account: A, target: Target, items: readonly LoadedItem[], protected readonly changed?: string) {
    super(account, target, items)
    this.isForeign = account.mayBeChanged
  }

  get idempotentFor(): number {
    // The same change a second time changes nothing.
    if (this.changed !== undefined) return Infinity
    return this.isForeign ? 0 : this.repeatableFor
  }

  /** The ID of the message to reply to. */
  protected get answered(): string | undefined {
    return this.items.find(item => item.type === 'reply')?.messageId
  }

  /**
   * Gets ready what can be before anything is sent: files are read, and uploaded where that sends nothing.
   *
   * @returns as `calls`
   * @throws SendError
   */
  protected abstract prepare(channelId: string): Promise<readonly Call[]>

  protected async calls(channelId: string, _elements: readonly h[], isForeign: boolean): Promise<readonly Call[] | undefined> {
    this.isForeign = isForeign
    if (isForeign && this.changed !== undefined) throw unchangeable('another plugin made something else of it')
    if (isForeign) return
    // A further round goes on with what the one before it has begun, such as fetching a file.
    return this.prepared ??= this.prepare(channelId).catch((error: unknown) => {
      this.prepared = undefined
      throw error
    })
  }
}

/** Makes a call, and once more after a short limit of its chat. A limit of the account concerns other chats as well: the core waits. */
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

/** The only one of the parts of a changed message. @throws SendError `refused` where there are more */
export function onlyPart<T>(parts: readonly T[]): T {
  const [part] = parts
  if (part === undefined || parts.length > 1) throw unchangeable('it would not be one message')
  return part
}
