import type { Bot, Context, h } from 'koishi'
import { RelayError } from '../../errors'
import type { Item, Target } from '../../message/model'
import { isObject, type JsonObject } from '../../message/parse'
import type { Presence } from '../bots'
import { classifyThrown, throwClassified } from '../failure'
import { announceSend, announceSent, BotAccount, createEncoder, createSession, isHeard, partlyArrived, render, toElement, type PlatformSupport, type SendSession } from '../koishi'
import { SendError, type Closure, type Contact, type HistoryPage, type LoadedItem, type Message, type Port, type Receipt, type Report } from '../port'
import { isOneBot, recordAnswers, requestOf, responseTimeout } from './adapter'
import { readData, readReceipt, toId, toNumber } from './answer'
import { askClosure, hearClosures } from './closure'
import { chatOf, readHistory, Reports } from './history'
import { Login } from './login'
import { contentOf, likenessOf, toCall, toSegments, type Content } from './message'

/** What is particular to OneBot 11. */
export class OneBot implements PlatformSupport {
  private readonly reports: Reports

  /** Listens to the events of the bots until the context is disposed. */
  constructor(private readonly ctx: Context) {
    this.reports = Reports.of(ctx)
  }

  owns(bot: Bot): boolean {
    return isOneBot(bot)
  }

  account(bot: Bot, presence: Presence): BotAccount {
    return new OneBotAccount(bot, presence, this.reports)
  }

  onChat(callback: Parameters<Port['onChat']>[0]): () => void {
    // A relay that was unloaded while the one before it ended still answers its callers: its context takes no listeners any more.
    return hearClosures(this.ctx.root, callback)
  }
}

/** An account whose bot speaks OneBot 11. */
class OneBotAccount extends BotAccount {
  readonly login: Login
  readonly readsFiles = false
  readonly takesFiles = true
  /** QQ publishes no limit. It takes about 5,000 characters, and a text shares them with mentions. */
  readonly longestText = 4_500
  readonly retriesUnanswered = true
  /** QQ lets members take back what is not older; administrators of a group may do so later. */
  override readonly recallableFor = 120_000

  constructor(bot: Bot, presence: Presence, readonly reports: Reports) {
    super(bot, presence)
    this.login = Login.of(bot, presence)
  }

  protected checkTarget({ kind, id }: Target): void {
    demandNumber(id, kind === 'group' ? 'group_id' : 'user_id')
  }

  /** Some implementations take an ID that becomes zero for everybody, and not every key may mention everybody. */
  protected checkItem(item: Item): void {
    if (item.type === 'at' && item.userId !== null) demandNumber(item.userId, 'the ID of a mention')
  }

  protected refusal(): undefined {
    return undefined
  }

  async recall(_target: Target, messageId: string): Promise<void> {
    readData(await this.ask('delete_msg', { message_id: toNumber(messageId) }))
  }

  groups(): Promise<Contact[]> {
    return this.list('get_group_list', ({ group_id: id, group_name: name }) => ({ id, name }))
  }

  override friends(): Promise<Contact[]> {
    return this.list('get_friend_list', ({ user_id: id, remark, nickname }) => ({ id, name: remark || nickname }))
  }

  override closure(target: Target): Promise<Closure | 'open' | undefined> {
    return askClosure((action, params) => this.ask(action, params), this.selfId, target)
  }

  message(target: Target, items: readonly LoadedItem[]): Message {
    return new OneBotMessage(this, target, items)
  }

  /**
   * Makes a call that sends nothing.
   *
   * @throws SendError when there is no connection; when the answer takes longer than the adapter waits for one, or the bot goes offline
   *   before it, whether its connection closes or not
   */
  async ask(action: string, params: JsonObject): Promise<unknown> {
    const request = requestOf(this.bot)
    if (!this.isOnline) throw new SendError('unsent', this.health.cause)
    const ends: (() => void)[] = []
    const lost = new Promise<never>((_resolve, reject) => {
      const timer = setTimeout(() => reject(new SendError('unanswered')), responseTimeout(this.bot))
      ends.push(() => clearTimeout(timer), this.onOffline(() => reject(new SendError('unanswered', 'the connection was lost'))))
    })
    return Promise.race([request(action, params), lost]).catch(throwClassified).finally(() => {
      for (const end of ends) end()
    })
  }

  private async list(action: string, read: (entry: JsonObject) => Record<keyof Contact, unknown>): Promise<Contact[]> {
    const list = readData(await this.ask(action, {}))
    if (!Array.isArray(list)) throw new SendError('unanswered', 'the answer of the platform cannot be read')
    return list.filter(isObject).flatMap(entry => {
      const { id: given, name } = read(entry)
      const id = toId(given)
      return id === undefined ? [] : [{ id, name: typeof name === 'string' ? name : '' }]
    })
  }
}

/**
 * A message through a OneBot bot. The relay makes the calls itself, because the adapter's encoder discards the platform's reasons. The
 * encoder is used only for elements of other plugins.
 */
class OneBotMessage implements Message {
  readonly likeness: string
  /** The elements of the last call, or of the first one that will be made, and what other plugins made of them. */
  private sent: readonly [elements: readonly h[], announced: readonly h[]]

  constructor(private readonly account: OneBotAccount, private readonly target: Target, private readonly items: readonly LoadedItem[]) {
    const elements = items.map(toElement)
    this.sent = [elements, elements]
    this.likeness = likenessOf(contentOf(toSegments(items, elements) ?? []))
  }

  send(begin: () => void): Promise<Receipt> {
    return this.account.login.follow(this.deliver(begin))
  }

  private async deliver(begin: () => void): Promise<Receipt> {
    const { account: { bot }, target, items } = this
    try {
      const elements = items.map(toElement)
      const session = isHeard(bot) ? sessionTo(bot, target) : undefined
      const announced = session ? await announceSend(bot, session, elements) : elements
      const answer = this.post(begin, elements, announced)
      if (!session) return readReceipt(await answer)
      if (!answer) return await encode(bot, session)
      const receipt = readReceipt(await answer)
      announceSent(bot, session, receipt.messageIds[0] ?? '')
      return receipt
    } catch (error) {
      throw classifyThrown(error)
    }
  }

  reports(): readonly Report[] {
    const { account: { selfId, reports }, target, content } = this
    return content ? reports.equalTo(content, chatOf(selfId, target)) : []
  }

  async history(count: number): Promise<HistoryPage | undefined> {
    const { account, target: { kind, id }, content } = this
    if (!content) return
    const [action, chat] = kind === 'group' ? ['get_group_msg_history', 'group_id'] : ['get_friend_msg_history', 'user_id']
    // NapCat leaves out the links of pictures and files and the contents of forwarded messages, which cost it time. Others ignore this.
    const params = { [chat]: toNumber(id), count, disable_get_url: true, parse_mult_msg: false }
    const answer = await account.ask(action, params).catch(failLookUp)
    return readHistory(answer, account.selfId, content)
  }

  /** What the last call sent; `undefined` when only the adapter's encoder knows it. */
  private get content(): Content | undefined {
    const segments = toSegments(this.items, ...this.sent)
    return segments && contentOf(segments)
  }

  /**
   * Makes the call, and keeps nothing of its parameters while the answer is awaited: they may hold pictures.
   *
   * @returns the whole answer; `undefined` when only the adapter's encoder knows the elements
   */
  private post(begin: () => void, ...elements: [elements: readonly h[], announced: readonly h[]]): Promise<unknown> | undefined {
    const request = requestOf(this.account.bot)
    if (!this.account.isOnline) throw new SendError('unsent', this.account.health.cause)
    begin()
    this.sent = elements
    const segments = toSegments(this.items, ...elements)
    return segments && request(...toCall(this.target, segments))
  }
}

function sessionTo(bot: Bot, { kind, id }: Target): SendSession {
  return kind === 'private' ? createSession(bot, `private:${id}`, true) : createSession(bot, id, false, { guild: { id } })
}

/** Rethrows the failure of a look-up. The general rule takes an error with a reason for a refusal, but a look-up cannot be refused. */
function failLookUp(error: unknown): never {
  const failure = classifyThrown(error)
  throw failure.outcome === 'refused' ? new SendError('unanswered', undefined, { cause: error }) : failure
}

/** @throws RelayError `bad-request` */
function demandNumber(id: string, what: string): void {
  if (!/^[1-9][0-9]{0,19}$/.test(id)) throw new RelayError('bad-request', `${what} must be a number, as OneBot has it`)
}

/** Sends the elements of the session with the adapter's encoder, which may divide them into several platform messages. */
async function encode(bot: Bot, session: SendSession): Promise<Receipt> {
  const { view, answers } = recordAnswers(bot)
  const encoder = createEncoder(view, session.channelId ?? '')
  if (!encoder) throw new SendError('refused', 'the adapter cannot encode what another plugin made of the message')
  encoder.session = session
  await encoder.prepare()
  const failure: unknown = await render(encoder).then(() => undefined, (error: unknown) => error)
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
