import type { h, Session } from 'koishi'
import { toText, type JsonObject } from '../../lib/shape'
import type { Target } from '../../message/model'
import { BotAccount, type ChatListener, type PlatformSupport } from '../account'
import { classifyThrown, throwClassified } from '../failure'
import { Reported } from '../history'
import { keepConnected } from '../keeper/connection'
import { guardConnections } from '../keeper/guard'
import { isOneBot, recordAnswers, request, responseTimeout } from '../keeper/private-fields'
import { BotMessage, type Call, type Prepared } from '../send'
import { encode, partlyArrived, toElement, type SendSession } from '../session'
import { SendError, type Closure, type Contact, type HistoryPage, type LoadedItem, type Message, type Receipt, type Report } from '../port'
import { readList } from '../web'
import { askClosure, ClosureNotices } from './closure'
import { Login, watchLogins } from './login'
import {
  chatOf, contentOf, eventOf, incomingOneBot, isSameContent, likenessOf, readData, readHistory, readReceipt, readReport, toCall, toNumber,
  toSegments, type Content,
} from './message'
import { say, type Text } from '../../texts/text'

/** What is particular to OneBot 11. */
export const oneBot: PlatformSupport = {
  owns: isOneBot,
  account: (bot, presence) => new OneBotAccount(bot, presence),
  start(ctx, presence, logger) {
    guardConnections(ctx, logger, (bot, words) =>
      presence.refuse(bot, words === undefined ? { cause: 'token-refused' } : { cause: 'other-account', words }))
    keepConnected(ctx, logger)
    watchLogins(ctx, presence)
  },
  incoming: incomingOneBot,
}

/** Some implementations take an ID that becomes zero for everybody, and not every key may mention everybody. */
const number = /^[1-9][0-9]{0,19}$/

/** An account whose bot speaks OneBot 11. */
class OneBotAccount extends BotAccount {
  readonly login = Login.of(this.bot, this.presence)
  readonly readsFiles = false
  override readonly refusesEmpty = say('qq-no-empty-file')
  /** QQ publishes no limit. It takes about 5,000 characters, and a text shares them with mentions. */
  readonly longestText = 4_500
  readonly retriesUnanswered = true
  /** QQ lets members take back what is not older; administrators of a group may do so later. */
  override readonly recallableFor = 120_000
  /** The messages of the account itself that the platform has reported. */
  readonly reported = new Reported<Content>()
  private readonly notices = new ClosureNotices(this)

  override hear(session: Session, onChat: ChatListener): void {
    const event = eventOf(session)
    const report = readReport(event, this.selfId)
    if (report) this.reported.keep(report.chat, report.id, report.content)
    void this.notices.hear(event, (target, closure) => onChat(this.sid, target, closure))
  }

  protected readonly mentions = [(id: string): boolean => number.test(id), say('qq-mention')] as const

  protected override whyNoChat({ kind, id }: Target): Text | undefined {
    return number.test(id) ? undefined : say(kind === 'group' ? 'qq-group-number' : 'qq-number')
  }

  async recall(_target: Target, messageId: string): Promise<void> {
    await this.ask('delete_msg', { message_id: toNumber(messageId) })
  }

  groups(): Promise<Contact[]> {
    return this.list('get_group_list', ({ group_id: id, group_name: name }) => ({ id, name }))
  }

  friends(): Promise<Contact[]> {
    return this.list('get_friend_list', ({ user_id: id, remark, nickname }) => ({ id, name: remark || nickname }))
  }

  closure(target: Target): Promise<Closure | 'open' | undefined> {
    return askClosure(this, target)
  }

  message(target: Target, items: readonly LoadedItem[]): Message {
    return new OneBotMessage(this, target, items)
  }

  /**
   * Makes a call that sends nothing, and reads the data of its answer.
   *
   * @throws SendError for a failure; when there is no connection; when the answer takes longer than the adapter waits for one, or the bot
   *   goes offline before it, whether its connection closes or not
   */
  async ask(action: string, params: JsonObject): Promise<unknown> {
    if (!this.isOnline) throw this.offline()
    const ends: (() => void)[] = []
    const lost = new Promise<never>((_resolve, reject) => {
      const timer = setTimeout(() => reject(new SendError('unanswered')), responseTimeout(this.bot))
      ends.push(() => clearTimeout(timer), this.presence.subscribe(() => {
        if (!this.isOnline) reject(new SendError('unanswered', say('connection-lost')))
      }))
    })
    const answer = Promise.race([request(this.bot, action, params), lost])
    return answer.then(readData).catch(throwClassified).finally(() => ends.forEach(end => end()))
  }

  private async list(action: string, read: (entry: JsonObject) => Record<keyof Contact, unknown>): Promise<Contact[]> {
    const contacts = readList(await this.ask(action, {})).map(read)
    return contacts.map(({ id, name }) => ({ id: toText(id), name: toText(name) })).filter(({ id }) => id !== '')
  }
}

/**
 * A message through a OneBot bot. The encoder of the adapter discards the reasons of the platform, so it is used only for elements of other
 * plugins that nothing else knows.
 */
class OneBotMessage extends BotMessage<OneBotAccount> {
  readonly likeness: string
  /** The elements of the last call, or of the first one that will be made. */
  private sent: readonly h[]

  constructor(account: OneBotAccount, target: Target, items: readonly LoadedItem[]) {
    super(account, target, items)
    this.sent = items.map(toElement)
    this.likeness = likenessOf(this.content ?? contentOf([]))
  }

  override send(begin: () => void): Promise<Receipt> {
    return this.account.login.follow(super.send(begin))
  }

  protected async prepare(): Promise<Prepared> {
    const { account, target, target: { kind, id }, items } = this
    const channel = kind === 'private' ? { id: `private:${id}` } : { id, guildId: id }
    const { session, elements } = await this.announce(channel, () => items.map(toElement))
    if (session && !toSegments(items, elements)) return { calls: [await this.encode(channel.id, session)] }
    // A call keeps nothing of its parameters while the answer is awaited: they may hold pictures.
    const call: Call = () => {
      this.sent = elements
      const call = toCall(target, toSegments(items, elements) ?? [])
      return request(account.bot, ...call).then(readReceipt).catch(throwClassified)
    }
    return { calls: [call], session }
  }

  /** The call of the adapter's encoder, which may divide the elements of the session into several platform messages. */
  private async encode(channelId: string, session: SendSession): Promise<Call> {
    const { view, answers } = recordAnswers(this.account.bot)
    const render = await encode(view, channelId, session)
    return async () => {
      this.sent = session.elements ?? []
      const failure: unknown = await render().then(() => undefined, (error: unknown) => error)
      const messageIds = answers.flatMap((answer, index) => {
        try {
          return readReceipt(answer).messageIds
        } catch (error) {
          throw index === 0 ? error : partlyArrived(error)
        }
      })
      if (answers.length === 0) throw failure === undefined ? new SendError('suppressed') : classifyThrown(failure)
      // The adapter also throws a TypeError when an answer of success has no data. Then all its calls have succeeded.
      const cause = failure instanceof SendError ? failure.cause : failure
      if (failure !== undefined && !(cause instanceof TypeError)) throw partlyArrived(failure)
      return { messageIds }
    }
  }

  reports(): readonly Report[] {
    const { account: { reported }, target, content } = this
    return content ? reported.find(chatOf(target), each => isSameContent(each, content)) : []
  }

  async history(count: number): Promise<HistoryPage | undefined> {
    const { account, target: { kind, id }, content } = this
    if (!content) return
    const [action, chat] = kind === 'group' ? ['get_group_msg_history', 'group_id'] : ['get_friend_msg_history', 'user_id']
    // NapCat leaves out the links of pictures and files and the contents of forwarded messages, which cost it time. Others ignore this.
    const params = { [chat]: toNumber(id), count, disable_get_url: true, parse_mult_msg: false }
    return readHistory(account.ask(action, params), account.selfId, content)
  }

  /** What the last call sent; `undefined` when only the adapter's encoder knows it. */
  private get content(): Content | undefined {
    const segments = toSegments(this.items, this.sent)
    return segments && contentOf(segments)
  }
}
