import { Universal, type Bot, type Context } from 'koishi'
import { RelayError } from '../errors'
import { unwrap } from '../lib/unwrap'
import type { BotSelector, ParsedItem, Target } from '../message/model'
import { describeBots, isOnline, Presence, type BotState } from './bots'
import { throwClassified } from './failure'
import { SendError, type Account, type Attempt, type Contact, type Finding, type LoadedItem, type Message, type Port, type Receipt } from './port'
import { announceSend, createEncoder, createSession, render, toElement } from './sending'

/** What is particular to one platform. The bots of all others are used as Koishi has them. */
export interface PlatformSupport {
  /** As Koishi names it. */
  readonly platform: string
  /** The account of a bot on this platform. It must go on working when the plugin is loaded anew. */
  account(bot: Bot, presence: Presence): BotAccount
}

/** The accounts by their bots. They outlive a reload of the plugin, as the sends through them do. */
const accounts = new WeakMap<Bot, BotAccount>()

/** The bots of a Koishi app. */
export class KoishiPort implements Port {
  private readonly bots: readonly Bot[]
  private readonly presence: Presence

  /**
   * Listens until the context is disposed. What was made before goes on working when another port is made for the app.
   *
   * @param preferred the platform whose bots are chosen before others
   */
  constructor(ctx: Context, private readonly preferred: PlatformSupport) {
    this.bots = unwrap(ctx.bots)
    this.presence = Presence.of(ctx)
  }

  choose(selector: BotSelector): Account {
    return this.account(this.choosePresent(selector))
  }

  chooseLater(selector: BotSelector): Account {
    return this.account(this.prefer(selector, isOnline) ?? this.prefer(selector, () => true) ?? this.choosePresent(selector))
  }

  find(sid: string): Account | undefined {
    const bots = this.bots.filter(bot => bot.sid === sid)
    const bot = bots.find(isOnline) ?? bots[0]
    return bot && this.account(bot)
  }

  onOnline(callback: (sid: string) => void): () => void {
    return this.presence.subscribe(callback)
  }

  /** Whether any bot can send now. */
  get isOnline(): boolean {
    return this.bots.some(isOnline)
  }

  /** The bots and their state, for those who look after the relay. */
  describe(): BotState[] {
    return describeBots(this.bots)
  }

  private choosePresent(selector: BotSelector): Bot {
    const bot = this.prefer(selector, isOnline)
    if (bot) return bot
    const wanted = selector.platform !== undefined || selector.selfId !== undefined
    throw new RelayError('unsent', wanted ? 'no bot with this platform and self_id is online: try again later' : undefined)
  }

  private prefer({ platform, selfId }: BotSelector, isFit: (bot: Bot) => boolean): Bot | undefined {
    let first: Bot | undefined
    const wanted = platform !== undefined || selfId !== undefined
    for (const traced of this.bots) {
      const bot = unwrap(traced)
      if (!isFit(bot)) continue
      const matches = (platform === undefined || bot.platform === platform) && (selfId === undefined || bot.selfId === selfId)
      if (wanted ? !matches : bot.hidden) continue
      if (bot.platform === this.preferred.platform) return bot
      first ??= bot
    }
    return first
  }

  private account(traced: Bot): Account {
    const bot = unwrap(traced)
    const known = accounts.get(bot)
    // Some adapters know the platform of a bot only when it has logged in.
    if (known?.platform === (bot.platform ?? '')) return known
    const isPreferred = bot.platform === this.preferred.platform
    const account = isPreferred ? this.preferred.account(bot, this.presence) : new AdapterAccount(bot, this.presence)
    accounts.set(bot, account)
    return account
  }
}

/** What the accounts of all platforms have in common. */
export abstract class BotAccount implements Account {
  readonly platform: string

  constructor(readonly bot: Bot, private readonly presence: Presence) {
    this.platform = bot.platform ?? ''
  }

  get sid(): string {
    return this.bot.sid
  }

  get isOnline(): boolean {
    return isOnline(this.bot)
  }

  get selfId(): string {
    return this.bot.selfId
  }

  get name(): string {
    return this.bot.user?.name ?? ''
  }

  abstract checkIds(target: Target, items: readonly ParsedItem[]): void
  abstract recall(target: Target, messageId: string): Promise<void>
  abstract groups(): Promise<Contact[]>
  abstract friends(): Promise<Contact[]>
  abstract message(target: Target, items: readonly LoadedItem[]): Message
  abstract recent(target: Target): string[]

  onOffline(callback: () => void): () => void {
    return this.presence.onOffline(this.bot, callback)
  }

  onOnline(callback: () => void): () => void {
    return this.presence.onOnline(this.bot, callback)
  }
}

/** An account on any platform, through its adapter. */
class AdapterAccount extends BotAccount {
  /** What its IDs look like is not known here, but many an adapter makes one a part of an address as it is (RFC 3986, section 5.2.4). */
  checkIds({ kind, id }: Target): void {
    const leadsElsewhere = id.split(/[/\\]/).some(part => /^(?:\.|%2e){1,2}$/i.test(part))
    if (leadsElsewhere) throw new RelayError('bad-request', `this is no ID of a ${kind === 'group' ? 'group' : 'user'}`)
  }

  async recall({ kind, id }: Target, messageId: string): Promise<void> {
    const { bot } = this
    try {
      await bot.deleteMessage(kind === 'private' ? (await bot.createDirectChannel(id)).id : id, messageId)
    } catch (error) {
      throwClassified(error)
    }
  }

  /** What a target names are the channels in them. */
  async groups(): Promise<Contact[]> {
    const { bot } = this
    const groups: Contact[] = []
    try {
      for await (const guild of bot.getGuildIter()) {
        for await (const { id, type, name = guild.name ?? '' } of bot.getChannelIter(guild.id)) {
          if (type === Universal.Channel.Type.TEXT) groups.push({ id, name })
        }
      }
    } catch (error) {
      throwClassified(error)
    }
    return groups
  }

  async friends(): Promise<Contact[]> {
    const friends: Contact[] = []
    try {
      for await (const friend of this.bot.getFriendIter()) friends.push({ id: friend.user?.id ?? '', name: friend.nick ?? friend.user?.name ?? '' })
    } catch (error) {
      throwClassified(error)
    }
    return friends
  }

  message(target: Target, items: readonly LoadedItem[]): Message {
    return new AdapterMessage(this.bot, target, items)
  }

  recent(): string[] {
    return []
  }
}

/** A message on any platform: nobody can be asked what became of it. */
class AdapterMessage implements Message {
  constructor(private readonly bot: Bot, private readonly target: Target, private readonly items: readonly LoadedItem[]) {}

  send(attempt: Attempt): Promise<Receipt> {
    return this.call(attempt).catch(throwClassified)
  }

  find(): Promise<Finding> {
    return Promise.resolve({ kind: 'no-history' })
  }

  release(): void {
    // Nothing was noted.
  }

  /** Takes the steps of Koishi's `sendMessage` one by one: what other plugins do comes before anything may arrive. */
  private async call(attempt: Attempt): Promise<Receipt> {
    const { bot, target, items } = this
    const isDirect = target.kind === 'private'
    const channelId = isDirect ? (await bot.createDirectChannel(target.id)).id : target.id
    const encoder = createEncoder(bot, channelId)
    if (!encoder) {
      attempt.begin()
      return toReceipt(await bot.sendMessage(channelId, items.map(toElement)))
    }
    encoder.session = createSession(bot, channelId, isDirect)
    await encoder.prepare()
    await announceSend(bot, encoder.session, await encoder.session.transform(items.map(toElement)))
    attempt.begin()
    return toReceipt(await render(encoder))
  }
}

/** @throws SendError `suppressed` when there is no message, which is how `sendMessage` tells that another plugin held it back */
function toReceipt(ids: readonly string[]): Receipt {
  if (ids.length === 0) throw new SendError('suppressed')
  return { messageIds: ids.filter(id => id !== '') }
}
