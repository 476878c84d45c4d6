import { h, type MessageEncoder } from 'koishi'
import { sha256 } from '../../lib/crypto'
import { parseJson } from '../../lib/json'
import { unwrap } from '../../lib/koishi'
import { fieldsOf, isObject, objectsIn, toText, type JsonObject } from '../../lib/shape'
import type { CauseId } from '../../message/causes'
import type { Item, Target } from '../../message/model'
import { BotAccount, type PlatformSupport } from '../account'
import { toMention, type IncomingSupport } from '../incoming'
import { SendError, type Contact, type Limit, type LoadedItem, type LoadedMedia, type Message, type Receipt } from '../port'
import { onlyPart, WebMessage, type Call, type Channel } from '../send'
import { ask, readMedia, readPages, toFailure, toForm, unreadable, type MediaFile, type WebAnswer } from '../web'
import { divide, longestText, toPost, type Content } from './content'
import { say, type Text } from '../../texts/text'

/**
 * Reads messages from Feishu and Lark: from the event (https://open.feishu.cn/document/server-docs/im-v1/message/events/receive), because
 * the adapter reads markup into texts, loses line breaks around mentions and reads no rich texts, in which members write several lines.
 */
const incoming: IncomingSupport = {
  // In most groups, a bot receives only messages that mention it.
  readText(session) {
    const text = readWhole(session)
    return text !== undefined && hasMention(session, text) ? text.slice(text.indexOf(' ')).trimStart() : text
  },
  lacksMention: session => hasMention(session, readWhole(session)),
  quoteOf: session => toText(messageOf(session).event?.parent_id),
  targetOf(session): Target | undefined {
    const { event, sender } = messageOf(session)
    const { thread_id: thread, root_id: root, message_id: id, chat_id: chat, chat_type: type } = event ?? {}
    if (!thread) return
    const first = toText(root) || toText(id)
    return type === 'p2p' ? { kind: 'private', id: `${sender}:${first}` } : { kind: 'group', id: `${toText(chat)}:${first}` }
  },
}

/** The text of a message, with a mention of the bot. */
function readWhole(session: object): string | undefined {
  const { event } = messageOf(session)
  if (!event) return
  const { message_type: type, content, mentions } = event
  const mentioned = objectsIn(mentions)
  const names = new Map(mentioned.map(({ key, id }) => [toText(key), toText(fieldsOf(id).open_id)]))
  const body = fieldsOf(parseJson(toText(content)))
  return type === 'text' ? withMentions(toText(body.text), names) : type === 'post' ? textOfPost(body, names) : ''
}

function hasMention(session: object, text = ''): boolean {
  return text.startsWith(`@${messageOf(session).bot} `)
}

/** The message of an event, the ID of its sender, and that of the bot. Satori servers may forward such events as well. */
function messageOf(session: object): { event?: JsonObject, sender: string, bot: string } {
  const { adapterName, selfId } = fieldsOf(Reflect.get(unwrap(session), 'bot'))
  const { _data: data } = adapterName === 'lark' ? fieldsOf(Reflect.get(unwrap(session), 'event')) : {}
  const { message, sender } = fieldsOf(fieldsOf(data).event)
  return { ...isObject(message) && { event: message }, sender: toText(fieldsOf(fieldsOf(sender).sender_id).open_id), bot: toText(selfId) }
}

/** Replaces the keys that stand for mentions in a text, such as `@_user_1`. */
function withMentions(text: string, names: ReadonlyMap<string, string>): string {
  return text.replace(/@_(?:user_\d+|all)/g, key => key === '@_all' ? '@all' : toMention(names.get(key)) || key)
}

function textOfPost({ title, content }: JsonObject, names: ReadonlyMap<string, string>): string {
  const lines = Array.isArray(content) ? content.filter(Array.isArray).map(nodes => nodes.map(node => textOfNode(fieldsOf(node), names)).join('')) : []
  return [...title ? [toText(title)] : [], ...lines].join('\n')
}

function textOfNode({ tag, text, user_id: user }: JsonObject, names: ReadonlyMap<string, string>): string {
  if (tag !== 'at') return toText(text)
  return user === '@_all' || user === 'all' ? '@all' : toMention(names.get(toText(user)) ?? user)
}

/** Feishu and Lark, through `@satorijs/adapter-lark` (3.12.4). Koishi calls the platform `lark` in both cases. */
export const lark: PlatformSupport = {
  owns: bot => bot.adapterName === 'lark',
  account: (bot, presence) => new LarkAccount(bot, presence),
  incoming,
}

/** An app with the ability of a bot. */
class LarkAccount extends BotAccount {
  readonly readsFiles = true
  override readonly canUpdate = true
  readonly longestText = longestText
  /** Repeated calls are harmless for an hour, see `repeatableFor` of its messages; after that, no look-up can tell. */
  readonly retriesUnanswered = false

  protected readonly mentions = [
    (id: string): boolean => /^(?!all$)[\w.-]{1,100}$/i.test(id), say('lark-mention'),
  ] as const

  protected override whyNoChat(target: Target): Text | undefined {
    return readPlace(target) ? undefined : say(target.kind === 'group' ? 'lark-group-id' : 'lark-user-id')
  }

  protected override whyNotSent(item: Item): Text | undefined {
    return item.type === 'reply' && !isMessageId(item.messageId) ? say('lark-message-id') : undefined
  }

  async recall(_target: Target, messageId: string): Promise<void> {
    if (!isMessageId(messageId)) throw new SendError('refused', undefined, { isFinal: true })
    readData(await ask(this.bot, 'DELETE', `/im/v1/messages/${messageId}`))
  }

  async groups(): Promise<Contact[]> {
    const groups = await readPages(async token => {
      const page = token && `&page_token=${encodeURIComponent(token)}`
      const { items, has_more: hasMore, page_token: next } = readData(await ask(this.bot, 'GET', `/im/v1/chats?page_size=100${page}`))
      return { list: items, next: hasMore === true ? toText(next) : '' }
    })
    return groups.map(({ chat_id: id, name }) => ({ id: toText(id), name: toText(name) }))
  }

  message(target: Target, items: readonly LoadedItem[], name: string, changed?: string): Message {
    return new LarkMessage(this, target, items, name, changed)
  }
}

/** A place for messages: a chat, or a topic (话题) in it. */
interface Place {
  /** The kind of the ID, for the API. */
  type: 'chat_id' | 'open_id' | 'union_id' | 'email' | 'user_id'
  id: string
  /** The first message of the topic. */
  root: string | undefined
}

const placePattern = /^([^\s:/\\]{1,200})(?::(om_[\w-]{1,100}))?$/

/**
 * Reads a target: `oc_…` for a group; for a user `ou_…`, `on_…`, an e-mail address or the ID in the organisation; behind it
 * `:om_…` for a topic, which is named by its first message
 * (https://open.feishu.cn/document/home/user-identity-introduction/introduction).
 *
 * @returns `undefined` if the target cannot be on this platform
 */
function readPlace({ kind, id: text }: Target): Place | undefined {
  const [, id, root] = placePattern.exec(text) ?? []
  if (id === undefined) return
  const type = typeOf(id)
  return (type === 'chat_id') === (kind === 'group') ? { type, id, root } : undefined
}

function typeOf(id: string): Place['type'] {
  if (id.startsWith('oc_')) return 'chat_id'
  if (id.startsWith('ou_')) return 'open_id'
  if (id.startsWith('on_')) return 'union_id'
  return id.includes('@') ? 'email' : 'user_id'
}

/** Whether this is the ID of a message. Another text would change the path of an API call. */
function isMessageId(id: string): boolean {
  return /^om_[\w-]{1,100}$/.test(id)
}

/** The most bytes of a picture, and of any other file. */
const most = { picture: 10 * 2 ** 20, file: 30 * 2 ** 20 }

/** The extensions of files with types of their own; each begins with its type. */
const shownFile = /\.(pdf|doc|xls|ppt)x?$/i

/** A message to a chat, or to a topic in it. */
class LarkMessage extends WebMessage {
  readonly likeness: string
  /** "Requests with the same uuid send at most one message within an hour", less the time of a call. */
  protected override readonly repeatableFor = 55 * 60_000
  /** `check` has refused every other target. */
  private readonly place: Place = readPlace(this.target) ?? { type: 'chat_id', id: this.target.id, root: undefined }

  constructor(account: BotAccount, target: Target, items: readonly LoadedItem[], name: string, changed?: string) {
    super(account, target, items, changed)
    // A part of a message that was refused as a whole may have used its name.
    this.likeness = `${name} ${items.length}`
  }

  protected channel(): Promise<Channel> {
    return Promise.resolve({ id: this.place.id })
  }

  protected async toCalls(): Promise<Call[]> {
    const { changed } = this
    if (changed !== undefined) {
      const content = onlyPart(await this.contents())
      return [() => this.change(changed, content)]
    }
    if (this.answered !== undefined) await this.checkAnswered(this.answered)
    const contents = await this.contents()
    return contents.map((content, index) => () => this.post(content, `${this.likeness} ${index}`))
  }

  /** Makes each message of the encoder a reply to the first one of the topic. */
  protected override async adapt(encoder: MessageEncoder): Promise<void> {
    const { answered, place: { root } } = this
    if (answered !== undefined) await this.checkAnswered(answered)
    if (root === undefined) return
    // As after a message in that topic; only that of a quote has to be told so.
    encoder.referrer = { type: 'im.message.receive_v1', event: { message: { message_id: root, thread_id: root } } }
    encoder.session.elements = h.transform(encoder.session.elements ?? [], { quote: attrs => h('quote', { ...attrs, replyInThread: true }) })
  }

  /** The message to reply to, which may be the first one of a topic. */
  protected override get answered(): string | undefined {
    return super.answered ?? this.place.root
  }

  /** The subject of a failure: a topic is represented by its first message. */
  private get subject(): Subject {
    const { target: { kind }, place: { root }, answered } = this
    return kind === 'group' && root !== undefined && root === answered ? 'topic' : kind
  }

  /**
   * A reply arrives where the answered message is, whichever chat the caller may write to: so that has to be the chat of the target.
   * Sources: https://open.feishu.cn/document/server-docs/im-v1/message/get and …/im-v1/chat/get-2
   */
  private async checkAnswered(id: string): Promise<void> {
    const { place } = this
    const { items } = await this.need('GET', `/im/v1/messages/${id}`, undefined, this.subject === 'topic' ? 'topic' : undefined)
    const { chat_id: chat, sender } = fieldsOf(Array.isArray(items) ? items[0] : undefined)
    const isThere = place.type === 'chat_id'
      ? chat === place.id
      : fieldsOf(sender).id === place.id && (await this.need('GET', `/im/v1/chats/${encodeURIComponent(toText(chat))}`)).chat_mode === 'p2p'
    if (!isThere) throw new SendError('refused', say('answered-not-here'), { isFinal: true })
  }

  /** Makes a call that a send needs. A missing permission for it is about this message only: others may be sent. */
  private async need(method: string, path: string, data?: object, subject?: Subject): Promise<JsonObject> {
    try {
      return readData(await ask(this.account.bot, method, path, data), subject)
    } catch (error) {
      const isForbidden = error instanceof SendError && error.causeId === 'not-permitted'
      throw isForbidden ? new SendError('refused', error.wording, { isFinal: true }) : error
    }
  }

  private async contents(): Promise<Content[]> {
    const items = this.items.filter(({ type }) => type !== 'reply')
    const [item] = items
    if (item?.type === 'file' || item?.type === 'video' || item?.type === 'audio') return [await this.uploadFile(item)]
    const keys = new Map<LoadedItem, string>()
    for (const each of items) if (each.type === 'image') keys.set(each, await this.uploadPicture(each))
    const keyOf = (picture: LoadedMedia): string => keys.get(picture) ?? ''
    if (item?.type === 'image' && items.length === 1) return [{ type: 'image', value: { image_key: keyOf(item) } }]
    return divide(items).map(part => toPost(part, keyOf))
  }

  private async uploadPicture(item: LoadedMedia): Promise<string> {
    return this.upload('image', { image_type: 'message' }, await readMedia(this.account.bot, item, most.picture))
  }

  /** A video must be MP4, and a voice message Opus. Others are sent as files, which only lack the player. */
  private async uploadFile(item: LoadedMedia): Promise<Content> {
    const file = await readMedia(this.account.bot, item, most.file)
    const { name, type } = file
    const isVideo = item.type === 'video' && (type === 'video/mp4' || /\.mp4$/i.test(name))
    const isVoice = item.type === 'audio' && (type === 'audio/opus' || /\.opus$/i.test(name))
    const shown = shownFile.exec(name)?.[1]?.toLowerCase() ?? 'stream'
    const key = await this.upload('file', { file_type: isVideo ? 'mp4' : isVoice ? 'opus' : shown, file_name: name }, file)
    return { type: isVideo ? 'media' : isVoice ? 'audio' : 'file', value: { file_key: key } }
  }

  /** @returns the key of the upload, for the content of a message */
  private async upload(kind: 'image' | 'file', fields: JsonObject, file: MediaFile): Promise<string> {
    const data = await this.need('POST', `/im/v1/${kind}s`, toForm(fields, [[kind, file]]))
    const key = toText(data[`${kind}_key`])
    if (!key) throw unreadable()
    return key
  }

  /** https://open.feishu.cn/document/server-docs/im-v1/message/update */
  private async change(id: string, { type, value }: Content): Promise<Receipt> {
    const { account: { bot }, target: { kind } } = this
    readData(await ask(bot, 'PUT', `/im/v1/messages/${id}`, { msg_type: type, content: JSON.stringify(value) }), kind)
    return { messageIds: [id] }
  }

  private async post({ type, value }: Content, name: string): Promise<Receipt> {
    const { account: { bot }, subject, place, answered } = this
    const body = { msg_type: type, content: JSON.stringify(value), uuid: sha256(name).toString('base64url') }
    const data = readData(await (answered === undefined
      ? ask(bot, 'POST', `/im/v1/messages?receive_id_type=${place.type}`, { receive_id: place.id, ...body })
      : ask(bot, 'POST', `/im/v1/messages/${answered}/reply`, { ...body, ...place.root !== undefined && { reply_in_thread: true } })), subject, true)
    const id = toText(data.message_id)
    return { messageIds: id ? [id] : [] }
  }
}

/*
 * Answers of Feishu and Lark: `{ code, msg, data }`, with the code 0 for success. The codes are those of the pages "Send message"
 * (https://open.feishu.cn/document/server-docs/im-v1/message/create), "Reply" (…/im-v1/message/reply), "Upload image" (…/im-v1/image/create)
 * and "Upload file" (…/im-v1/file/create), and of the general list (https://open.feishu.cn/document/ukTMukTMukTM/ugjM14COyUjL4ITN).
 */

/** Codes by their cause. */
type CauseTable<K = CauseId> = readonly (readonly [meaning: K, codes: readonly number[]])[]

/**
 * For a new message: the chat is external, of another tenant or encrypted, and the app may not write there. For a change: 230027 if such a
 * chat allows none, 230075 if it is too late (https://open.feishu.cn/document/server-docs/im-v1/message/update).
 */
const newCauses: CauseTable = [['forbidden', [230027, 230038, 230075]]]

const groupCauses: CauseTable = [
  // The bot is out of the chat; the chat, or the topic, is invalid, dissolved, or does not exist.
  ['no-such-group', [10002, 230002, 230019, 230034, 232009, 99992355, 99992356]],
  // The settings of the group do not allow it.
  ['all-muted', [230018, 230035]],
]

/** The subject of a call: a chat, or a topic of a group. */
type Subject = Target['kind'] | 'topic'

const chatCauses: Readonly<Record<Subject, CauseTable>> = {
  group: groupCauses,
  private: [
    // The user does not exist, or is known to another app or tenant.
    ['not-friend', [230034, 99992351, 99992352, 99992353, 99992359, 99992360, 99992361, 99992363, 99992364, 99992381]],
    ['blocked', [230035]],
  ],
  topic: [
    // Its first message was recalled or deleted, or the bot cannot see it. 231003 is what openclaw pull request 27614 has met.
    ['no-such-group', [230011, 230050, 230110, 231003, 99992354]],
    ...groupCauses,
  ],
}

const commonCauses: CauseTable = [
  // The bot is not available to the user, or the user has resigned. A private chat can also be named by its `oc_…`.
  ['not-friend', [230013, 230029]],
  // The user has stopped the bot from sending messages.
  ['blocked', [230053]],
  ['too-long', [230025]],
  // The file is empty, too large, of another type than the message, or no picture that can be read.
  ['media-failed', [230055, 234001, 234006, 234010, 234011, 234039]],
  // The token is missing, or invalid.
  ['logged-out', [99991661, 99991663, 99991664, 99991665, 99991668, 99991671]],
  // The app is no bot, not in use, lacks a scope, is called from an address that it denies, or has used up its quota for the month.
  ['not-permitted', [230006, 234007, 99991401, 99991403, 99991662, 99991672, 99991673]],
]

/** Codes of rate limits, by scope. */
const limits: CauseTable<Limit['scope']> = [['account', [99991400, 11232, 11247]], ['chat', [11233, 230020]]]

/** The wait if the platform gives none, in milliseconds: a chat allows five messages a second, an account 1,000 calls a minute. */
const waits: Readonly<Record<Limit['scope'], number>> = { chat: 1_000, account: 5_000 }

/** The message is being sent: a repeated call with the same `uuid` returns the result. */
const beingSent: readonly unknown[] = [230049, 18121]
/** The texts of server failures, such as `internal error` (2200), which may come with any HTTP status. */
const serverFailed = /\binternal\b.*\berror\b|\bserver error\b|\btime ?out\b/i
/** The texts of 230001, the code of all wrong parameters, for a chat or user that does not exist. */
const noSuchReceiver = /invalid receive_id\b/

/**
 * Reads the data of an answer.
 *
 * @param subject the subject of the call; absent if it was not about a chat
 * @param isNew whether the call sends a new message
 * @throws SendError
 */
function readData(answer: WebAnswer, subject?: Subject, isNew = false): JsonObject {
  const { code, data } = fieldsOf(answer.body)
  if (code === 0 && answer.status < 300) return fieldsOf(data)
  throw failureOf(answer, subject, isNew)
}

function failureOf({ status, headers, body }: WebAnswer, subject: Subject | undefined, isNew: boolean): SendError {
  const { code, msg } = fieldsOf(body)
  const scope = keyOf(limits, code) ?? (status === 429 ? 'account' : undefined)
  const words = typeof msg === 'string' && typeof code === 'number' ? `${msg} (${code})` : undefined
  if (scope) return toFailure(429, { words, scope, wait: waitOf(headers) ?? waits[scope] })
  if (typeof code !== 'number') return status < 300 ? unreadable() : toFailure(status, {})
  if (status >= 500 || beingSent.includes(code) || serverFailed.test(words ?? '')) return toFailure(500, { words })
  const named = code === 230001 && noSuchReceiver.test(words ?? '') ? 230034 : code
  const tables = [...isNew ? newCauses : [], ...subject ? chatCauses[subject] : [], ...commonCauses]
  return toFailure(400, { words, causeId: keyOf(tables, named) })
}

/** The key of a code in a table. */
function keyOf<K>(table: CauseTable<K>, code: unknown): K | undefined {
  return table.find(([, codes]) => codes.includes(Number(code)))?.[0]
}

/** The wait of "Frequency control" (https://open.feishu.cn/document/ukTMukTMukTM/uUzN04SN3QjL1cDN): a header with seconds. */
function waitOf(headers: Headers): number | undefined {
  const seconds = Number(headers.get('x-ogw-ratelimit-reset') ?? undefined)
  return seconds >= 0 ? Math.max(seconds, 1) * 1000 : undefined
}
