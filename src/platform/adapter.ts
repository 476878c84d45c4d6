import { Universal, type Bot } from 'koishi'
import { RelayError } from '../errors'
import type { Target } from '../message/model'
import { throwClassified } from './failure'
import { announceSend, BotAccount, createEncoder, createSession, render, toElement, type PlatformSupport } from './koishi'
import { SendError, type Contact, type HistoryPage, type LoadedItem, type Message, type Receipt } from './port'

/** Any platform, through the adapter of its bots and Koishi's own interface. */
export const anyPlatform: PlatformSupport = {
  owns: () => true,
  account: (bot, presence) => new AdapterAccount(bot, presence),
}

/** An account on any platform, through its adapter. */
class AdapterAccount extends BotAccount {
  readonly readsFiles = true
  readonly retriesUnanswered = false

  /** The form of IDs is unknown here, but many adapters put one into an address unescaped (RFC 3986, section 5.2.4). */
  protected checkIds({ kind, id }: Target): void {
    const leadsElsewhere = id.split(/[/\\]/).some(part => /^(?:\.|%2e){1,2}$/i.test(part))
    if (leadsElsewhere) throw new RelayError('bad-request', `this is not the ID of a ${kind === 'group' ? 'group' : 'user'}`)
  }

  protected refusal(): undefined {
    return undefined
  }

  async recall(target: Target, messageId: string): Promise<void> {
    await channelOf(this.bot, target).then(channelId => this.bot.deleteMessage(channelId, messageId)).catch(throwClassified)
  }

  /** Koishi has no common way to ask for it. */
  closure(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  groups(): Promise<Contact[]> {
    return listChannels(this.bot).catch(throwClassified)
  }

  friends(): Promise<Contact[]> {
    return listFriends(this.bot).catch(throwClassified)
  }

  message(target: Target, items: readonly LoadedItem[]): Message {
    return new AdapterMessage(this.bot, target, items)
  }
}

async function channelOf(bot: Bot, { kind, id }: Target): Promise<string> {
  return kind === 'private' ? (await bot.createDirectChannel(id)).id : id
}

const text = Universal.Channel.Type.TEXT

/** The channels that targets name: those in guilds that take text. */
async function listChannels(bot: Bot): Promise<Contact[]> {
  const channels: Contact[] = []
  for await (const guild of bot.getGuildIter()) {
    for await (const { id, type, name = guild.name ?? '' } of bot.getChannelIter(guild.id)) {
      if (type === text) channels.push({ id, name })
    }
  }
  return channels
}

async function listFriends(bot: Bot): Promise<Contact[]> {
  const friends: Contact[] = []
  for await (const { user, nick } of bot.getFriendIter()) friends.push({ id: user?.id ?? '', name: nick ?? user?.name ?? '' })
  return friends
}

/** A message on any platform. Koishi has no common interface to the history of a chat, so nothing is ever looked up. */
class AdapterMessage implements Message {
  /** All alike: nothing tells apart what is never looked up. */
  readonly likeness = ''

  constructor(private readonly bot: Bot, private readonly target: Target, private readonly items: readonly LoadedItem[]) {}

  async send(begin: () => void): Promise<Receipt> {
    const ids = await this.call(begin).catch(throwClassified)
    // This is how `sendMessage` tells that another plugin suppressed the message.
    if (ids.length === 0) throw new SendError('suppressed')
    return { messageIds: ids.filter(id => id !== '') }
  }

  history(): Promise<HistoryPage | undefined> {
    return Promise.resolve(undefined)
  }

  /** Takes the steps of Koishi's `sendMessage` one by one: other plugins have their say before the message may arrive. */
  private async call(begin: () => void): Promise<string[]> {
    const { bot, target, items } = this
    const channelId = await channelOf(bot, target)
    const encoder = createEncoder(bot, channelId)
    if (!encoder) {
      begin()
      return bot.sendMessage(channelId, items.map(toElement))
    }
    encoder.session = createSession(bot, channelId, target.kind === 'private')
    await encoder.prepare()
    await announceSend(bot, encoder.session, await encoder.session.transform(items.map(toElement)))
    begin()
    return render(encoder)
  }
}
