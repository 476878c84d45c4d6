import type { Bot, Context, h } from 'koishi'
import { RelayError } from '../../errors'
import type { ParsedItem, Target } from '../../message/model'
import { isObject, type JsonObject } from '../../message/parse'
import type { Segment } from '../../message/segments'
import type { Presence } from '../bots'
import { classifyThrown, throwClassified } from '../failure'
import { BotAccount, type PlatformSupport } from '../koishi'
import { SendError, type Attempt, type Contact, type Finding, type LoadedItem, type LoadedMedia, type Message, type Receipt, type SendsSince } from '../port'
import { announceSend, announceSent, createEncoder, createSession, isHeard, partlyArrived, render, toElement, type SendSession } from '../sending'
import { platform, recordAnswers, requestOf } from './adapter'
import { readAnswer } from './answer'
import { contentOfItems, contentOfMessage, sealContent } from './content'
import { search } from './history'
import { toFile, toId, toNumber, toSegments } from './message'
import { chatOf, OwnMessages } from './own-messages'

/** What is particular to OneBot 11. */
export class OneBot implements PlatformSupport {
  readonly platform = platform
  private readonly own: OwnMessages

  /** Listens to what the bots hear until the context is disposed. */
  constructor(ctx: Context) {
    this.own = OwnMessages.of(ctx)
  }

  account(bot: Bot, presence: Presence): BotAccount {
    return new OneBotAccount(bot, presence, this.own)
  }
}

/** An account whose bot speaks OneBot 11. */
export class OneBotAccount extends BotAccount {
  constructor(bot: Bot, presence: Presence, readonly own: OwnMessages) {
    super(bot, presence)
  }

  checkIds({ kind, id }: Target, items: readonly ParsedItem[]): void {
    demandNumber(id, kind === 'group' ? 'group_id' : 'user_id')
    for (const item of items) {
      // There are implementations that take what comes out as zero for everybody, whom not every key may mention.
      if (!(item instanceof RelayError) && item.type === 'at' && item.userId !== null) demandNumber(item.userId, 'the ID of a mention')
    }
  }

  async recall(_target: Target, messageId: string): Promise<void> {
    readAnswer(await this.ask('delete_msg', { message_id: toNumber(messageId) }))
  }

  groups(): Promise<Contact[]> {
    return this.list('get_group_list', ({ group_id: id, group_name: name }) => ({ id, name }))
  }

  friends(): Promise<Contact[]> {
    return this.list('get_friend_list', ({ user_id: id, remark, nickname }) => ({ id, name: remark || nickname }))
  }

  message(target: Target, items: readonly LoadedItem[]): Message {
    return new OneBotMessage(this, target, items)
  }

  recent(target: Target): string[] {
    return this.own.recent(chatOf(this.bot.selfId, target))
  }

  private async list(action: string, read: (entry: JsonObject) => Record<keyof Contact, unknown>): Promise<Contact[]> {
    const answer = await this.ask(action, {})
    readAnswer(answer)
    const list: unknown = isObject(answer) ? answer.data : undefined
    if (!Array.isArray(list)) throw new SendError('unanswered', 'the answer of the platform cannot be read')
    return list.filter(isObject).flatMap(entry => {
      const { id: given, name } = read(entry)
      const id = toId(given)
      return id === undefined ? [] : [{ id, name: typeof name === 'string' ? name : '' }]
    })
  }

  private async ask(action: string, params: Record<string, unknown>): Promise<unknown> {
    const request = requestOf(this.bot)
    if (!request) throw new SendError('unsent')
    return request(action, params).catch(throwClassified)
  }
}

interface Call {
  action: string
  params: Record<string, unknown>
  /** The message in the parameters, `undefined` for the upload of a file. */
  message?: readonly Segment[]
}

/**
 * A message through a OneBot bot. The calls are made here and not by the adapter's encoder, because that throws the platform's
 * reasons away; it encodes only what the relay does not make itself.
 */
class OneBotMessage implements Message {
  /** What was sent, which other plugins may have made of the items; `encoded` when only the adapter knows it. */
  private sent: readonly Segment[] | 'encoded' | undefined
  /** Whether a search found the message: then an answer that comes late tells of the same one. */
  private isFound = false

  constructor(private readonly account: OneBotAccount, private readonly target: Target, private readonly items: readonly LoadedItem[]) {}

  async send(attempt: Attempt): Promise<Receipt> {
    const begun = { since: Date.now(), at: performance.now() }
    const receipt = await this.call(attempt).catch(throwClassified)
    return this.isFound ? receipt : this.note(receipt, begun)
  }

  async find(since: number, sends: SendsSince): Promise<Finding> {
    const { account, target, items, sent } = this
    if (sent === 'encoded') return { kind: 'no-history' }
    const finding = await search(account, target, contentOfMessage(sent) ?? contentOfItems(items), since, sends)
    this.isFound ||= finding.kind === 'found'
    return finding
  }

  release(receipt: Receipt): void {
    this.isFound = false
    const { account: { own }, chat, sent, items } = this
    own.release(chat, receipt, contentOfMessage(sent === 'encoded' ? undefined : sent) ?? contentOfItems(items))
  }

  private get chat(): string {
    return chatOf(this.account.bot.selfId, this.target)
  }

  /** @throws SendError `unanswered` where a search has taken the message, for this send or an equal one: it answers for that one only */
  private note(receipt: Receipt, { since, at }: { since: number, at: number }): Receipt {
    const { account: { own }, chat, items } = this
    const isNamed = receipt.messageIds.length > 0
    const [until, took] = [Date.now(), performance.now() - at]
    const trace = isNamed ? undefined : { content: sealContent(contentOfItems(items)), since, until, took }
    const isFree = trace ? own.noteUnnamed(chat, trace) : own.note(chat, receipt.messageIds, until, took)
    if (!isFree) throw new SendError('unanswered')
    return trace ? { ...receipt, trace } : receipt
  }

  private async call(attempt: Attempt): Promise<Receipt> {
    const { account: { bot }, target, items } = this
    const isDirect = target.kind === 'private'
    const channelId = isDirect ? `private:${target.id}` : target.id
    const create = (): SendSession => createSession(bot, channelId, isDirect, isDirect ? undefined : target.id)
    const elements = items.map(toElement)
    const session = isHeard(bot) ? create() : undefined
    const announced = session ? await announceSend(bot, session, elements) : elements
    const request = requestOf(bot)
    if (!request) throw new SendError('unsent')
    attempt.begin()
    const call = toCall(target, items, elements, announced)
    this.sent = call ? call.message : 'encoded'
    if (!call) return encode(bot, channelId, session ?? Object.assign(create(), { elements }))
    const receipt = readAnswer(await request(call.action, call.params))
    if (session) announceSent(bot, session, receipt.messageIds[0] ?? '')
    return receipt
  }
}

/**
 * The action that sends these elements, `undefined` when they need the adapter's encoder.
 *
 * @param announced what other plugins made of the elements
 */
function toCall({ kind, id }: Target, items: readonly LoadedItem[], elements: readonly h[], announced: readonly h[]): Call | undefined {
  const isGroup = kind === 'group'
  const to = isGroup ? 'group_id' : 'user_id'
  const file = items.find((item): item is LoadedMedia => item.type === 'file')
  if (file) {
    if (announced.length !== 1 || announced[0] !== elements[0]) return
    return {
      action: isGroup ? 'upload_group_file' : 'upload_private_file',
      params: { [to]: toNumber(id), file: file.path ?? toFile(file.src), name: file.name },
    }
  }
  const message = toSegments(announced)
  return message && { action: isGroup ? 'send_group_msg' : 'send_private_msg', params: { [to]: toNumber(id), message }, message }
}

/** @throws RelayError `bad-request` */
function demandNumber(id: string, what: string): void {
  if (!/^[1-9][0-9]{0,19}$/.test(id)) throw new RelayError('bad-request', `${what} must be a number, as OneBot has it`)
}

/** Sends what other plugins made of a message with the adapter's encoder, which may make several platform messages of it. */
async function encode(bot: Bot, channelId: string, session: SendSession): Promise<Receipt> {
  const { view, answers } = recordAnswers(bot)
  const encoder = createEncoder(view, channelId)
  if (!encoder) throw new SendError('refused', 'the adapter cannot encode what another plugin made of the message')
  encoder.session = session
  await encoder.prepare()
  let failure: unknown
  await render(encoder).catch((error: unknown) => {
    failure = error
  })
  const messageIds: string[] = []
  for (const answer of answers) {
    try {
      messageIds.push(...readAnswer(answer).messageIds)
    } catch (error) {
      throw answer === answers[0] ? error : partlyArrived(error)
    }
  }
  if (answers.length === 0) throw failure === undefined ? new SendError('suppressed') : classifyThrown(failure)
  // The adapter also throws when an answer of success holds no data; then all calls made were answered well.
  const isWithoutData = failure instanceof TypeError || (failure instanceof SendError && failure.cause instanceof TypeError)
  if (failure !== undefined && !isWithoutData) throw partlyArrived(failure)
  return { messageIds }
}
