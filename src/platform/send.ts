import { h, type MessageEncoder } from 'koishi'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { toText } from '../lib/shape'
import type { Target } from '../message/model'
import type { BotAccount } from './account'
import { classifyThrown } from './failure'
import { announceSend, announceSent, breakTags, createSession, encode, partlyArrived, toElement, type SendSession } from './session'
import { longestLimit, SendError, type Fitting, type LoadedItem, type Message, type Receipt } from './port'
import { say, type Text } from '../texts/text'

/** One call that sends one platform message. @throws SendError */
export type Call = () => Promise<Receipt>

/** A message that is ready to leave. */
export interface Prepared {
  /** The calls that send it, at least one, in order. */
  calls: readonly Call[]
  /** Shown to other plugins after the calls. Absent if there are none, or the adapter shows them the message. */
  session?: SendSession | undefined
  /** Whether a repeated call is harmless. If one of several calls fails, a further round then makes only the missing ones. */
  isRepeatable?: boolean
}

/** A chat in the adapter's terms. */
export interface Channel {
  id: string
  guildId?: string
}

/** A message as other plugins left it. */
interface Announced {
  /** Absent if no plugin listens. */
  session: SendSession | undefined
  elements: readonly h[]
  /** Whether a plugin changed the elements. */
  isForeign: boolean
}

/** A message of a bot. */
export abstract class BotMessage<A extends BotAccount = BotAccount> implements Message {
  abstract readonly likeness: string

  constructor(protected readonly account: A, protected readonly target: Target, protected readonly items: readonly LoadedItem[]) {}

  /** Does all that sends nothing: finds the channel, reads files, shows the message to other plugins. @throws SendError */
  protected abstract prepare(): Promise<Prepared>

  async send(begin: () => void): Promise<Receipt> {
    const { account } = this
    let hasBegun = false
    try {
      const { calls, session, isRepeatable = false } = await this.prepare()
      if (!account.isOnline) throw account.offline()
      begin()
      hasBegun = true
      const messageIds = await makeAll(calls, isRepeatable)
      if (session) announceSent(account, session, messageIds[0] ?? '')
      return { messageIds }
    } catch (error) {
      // The adapter may have thrown after its call.
      const failure = classifyThrown(error, hasBegun ? 'unanswered' : 'refused')
      if (hasBegun || failure.outcome !== 'unanswered') throw failure
      // A failed preparation has sent nothing. It says nothing of the call, so it is no cause for the core.
      throw new SendError('unsent', failure.wording, { causeId: 'unreachable', cause: failure.cause })
    }
  }

  /**
   * Shows the message to other plugins before it is sent.
   *
   * @param toElements makes new elements each time, because plugins may change them in place
   */
  protected async announce({ id, guildId }: Channel, toElements: () => h[]): Promise<Announced> {
    const { account, target: { kind } } = this
    const elements = toElements()
    if (!account.isHeard) return { session: undefined, elements, isForeign: false }
    const session = createSession(account.bot, id, kind === 'private', guildId === undefined ? {} : { guild: { id: guildId } })
    const left = await announceSend(account, session, elements)
    return { session, elements: left, isForeign: !isDeepStrictEqual(left, toElements()) }
  }
}

/** Waits for the channel of a message. Meanwhile, the message shows that it waits for the platform. */
export async function opened<T>(message: { isOpening: boolean }, channel: Promise<T>): Promise<T> {
  message.isOpening = true
  return channel.finally(() => message.isOpening = false)
}

async function makeAll(calls: readonly Call[], isRepeatable: boolean): Promise<string[]> {
  const ids: string[] = []
  for (const [index, call] of calls.entries()) {
    try {
      const { messageIds } = await (index === 0 ? call() : pastLimit(call))
      ids.push(...messageIds)
    } catch (error) {
      const isRefused = error instanceof SendError && error.outcome === 'refused'
      throw index === 0 ? error : partlyArrived(error, isRefused || !isRepeatable)
    }
  }
  return ids
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

/** Whether items are texts followed by at most so many pictures, or texts alone. @param longest the most characters above pictures */
export function hasCaption(items: readonly Fitting[], pictures: number, longest = Infinity): boolean {
  const shown = items.filter(({ type }) => type !== 'reply')
  const first = shown.findIndex(({ type }) => type === 'image')
  const media = first < 0 ? [] : shown.slice(first)
  const length = shown.reduce((sum, { text = '' }) => sum + text.length, 0)
  return media.length <= pictures && media.every(({ type }) => type === 'image') && (media.length === 0 || length <= longest)
}

/**
 * A message that the relay sends by calls of its own, because adapters lose the answers of platforms. It is prepared once. The adapter's
 * encoder sends it only if another plugin changed it.
 */
export abstract class WebMessage<A extends BotAccount = BotAccount> extends BotMessage<A> {
  isOpening = false
  /** As `idempotentFor`, if no other plugin has changed the message. */
  protected readonly repeatableFor: number = 0
  /** Whether another plugin has changed the message, or may have done so before a restart. */
  private isForeign: boolean
  private calls: Promise<readonly Call[]> | undefined

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

  /** @throws SendError */
  protected abstract channel(): Promise<Channel>

  /**
   * Prepares the message as far as possible without sending: reads files, and uploads them if that sends nothing.
   *
   * @returns the calls that send it
   * @throws SendError
   */
  protected abstract toCalls(channelId: string): Promise<readonly Call[]>

  /** Completes the place in the adapter's encoder, if the channel is not all of it. @throws SendError */
  protected adapt?(encoder: MessageEncoder): Promise<void>

  protected async prepare(): Promise<Prepared> {
    const channel = await opened(this, this.channel())
    const { session, isForeign } = await this.announce(channel, () => this.items.map(toElement))
    this.isForeign = isForeign
    if (session && isForeign) return { calls: [await this.encode(channel.id, session)] }
    // A further round continues the preparation of the one before, such as a download.
    this.calls ??= this.toCalls(channel.id).catch((error: unknown) => {
      this.calls = undefined
      throw error
    })
    return { calls: await this.calls, session, isRepeatable: this.idempotentFor > 0 }
  }

  /** The call that sends what another plugin made of the message. */
  private async encode(channelId: string, session: SendSession): Promise<Call> {
    if (this.changed !== undefined) throw unchangeable(say('changed-by-plugin'))
    // Adapters do not escape tags that mention users, and the caller's texts may contain some.
    session.elements = h.transform(session.elements ?? [], { text: attrs => h.text(breakTags(toText(attrs.content))) })
    const render = await encode(this.account.bot, channelId, session, encoder => this.adapt?.(encoder))
    return async () => {
      const results = await render()
      if (results.length === 0) throw new SendError('unanswered', say('adapter-does-not-say'))
      return { messageIds: results.filter(Boolean) }
    }
  }
}

function unchangeable(reason: Text): SendError {
  return new SendError('refused', say('unchangeable', { reason }), { isFinal: true })
}

/** The only part of a changed message. @throws SendError `refused` if there are more */
export function onlyPart<T>(parts: readonly T[]): T {
  const [part] = parts
  if (part === undefined || parts.length > 1) throw unchangeable(say('not-one-message'))
  return part
}
