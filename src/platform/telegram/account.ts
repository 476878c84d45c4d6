import type { Bot } from 'koishi'
import { demand } from '../../errors'
import { networkReason } from '../../lib/endpoint'
import { unwrap } from '../../lib/koishi'
import { fieldsOf, toText, type JsonObject } from '../../lib/shape'
import { divideText } from '../../lib/words'
import type { CauseId } from '../../message/causes'
import type { Item, Target } from '../../message/model'
import { BotAccount, type PlatformSupport } from '../account'
import { classifyThrown } from '../failure'
import { elementsText, type IncomingSupport } from '../incoming'
import { attend, type Keeper } from '../keeper/restarts'
import { hasCaption, onlyPart, WebMessage, type Call, type Channel } from '../send'
import type { Fitting, LoadedItem, LoadedMedia, Message, Receipt } from '../port'
import { ask, readMedia, retryAfterOf, toFailure, toForm, unreadable, type MediaFile, type WebAnswer } from '../web'
import { say, type Text } from '../../texts/text'

/** Reads messages from Telegram, because the adapter drops the slash and the bot's name of a command, `/name@bot`. */
const incoming: IncomingSupport = {
  readText(session) {
    const { _type: platform, type, message, _data: update } = eventOf(session)
    if (platform !== 'telegram') return
    const text = elementsText(fieldsOf(message).elements)
    return type === command ? firstWord(update).slice(0, 1) + text : text
  },
  readRaw(session) {
    const { type, message, _data: update } = eventOf(session)
    if (type === command) return firstWord(update) + elementsText(fieldsOf(message).elements).replace(/^\S+/, '')
  },
  // With its chat, as in answers of the relay: IDs are those of a chat.
  quoteOf(session) {
    const { guild, channel, message } = eventOf(session)
    const id = toText(fieldsOf(fieldsOf(message).quote).id)
    return id && `${toText(fieldsOf(guild ?? channel).id)}:${id}`
  },
  // For the adapter, a topic is a channel, and its group the guild.
  targetOf(session) {
    const { guild, channel } = eventOf(session)
    const [group, topic] = [fieldsOf(guild).id, fieldsOf(channel).id].map(toText)
    if (group && topic && group !== topic) return { kind: 'group', id: `${group}:${topic}` }
  },
}

const command = 'interaction/command'

function eventOf(session: object): JsonObject {
  return fieldsOf(Reflect.get(unwrap(session), 'event'))
}

/** The first word of a message as it was typed. Source: https://core.telegram.org/bots/api#message */
function firstWord(update: unknown): string {
  return /^\S*/.exec(toText(fieldsOf(fieldsOf(update).message).text))?.[0] ?? ''
}

/** Telegram, through the bots of @satorijs/adapter-telegram; checked against version 4.5.11. The API: https://core.telegram.org/bots/api */
export const telegram: PlatformSupport = {
  owns: ({ adapterName }) => adapterName === 'telegram',
  account: (bot, presence) => new TelegramAccount(bot, presence),
  start: ctx => attend(ctx, bot => telegram.owns(bot) ? reportLogins(bot) : undefined).begin(),
  incoming,
}

/** Makes a failed login known as the error of the bot, which would stay "connecting" (upstream/15). */
function reportLogins(bot: Bot): Keeper {
  const login: unknown = Reflect.get(bot, 'initialize')
  const undo = (): void => void Reflect.deleteProperty(bot, 'initialize')
  Reflect.set(bot, 'initialize', async (...args: unknown[]) => {
    try {
      if (typeof login === 'function') await Reflect.apply(login, bot, args)
    } catch (error) {
      // The text of the adapter's error has the token.
      if (bot.isActive) bot.offline(new Error(String(classifyThrown(error).wording ?? networkReason(error))))
    }
  })
  return { update: () => undefined, dispose: undo }
}

/** A bot's account on Telegram, which has no list of its chats. */
class TelegramAccount extends BotAccount {
  readonly readsFiles = true
  override readonly canUpdate = true
  readonly longestText = longestText

  /** A text stands above or below pictures, not between them. */
  fits(items: readonly Fitting[]): boolean {
    return hasCaption(items, largestAlbum, longestCaption) || hasCaption(items.toReversed(), largestAlbum, longestCaption)
  }

  /** Telegram has no history for bots, and does not recognize repeated calls. */
  readonly retriesUnanswered = false
  /** https://core.telegram.org/bots/api#deletemessage */
  override readonly recallableFor = 48 * 60 * 60 * 1000

  /** https://core.telegram.org/bots/api#user: a number, or a name. */
  protected readonly mentions = [
    (id: string): boolean => isUser(id) || /^@?[a-z][a-z0-9_]{3,31}$/i.test(id), say('telegram-mention'),
  ] as const

  protected override whyNoChat(target: Target): Text | undefined {
    return readChat(target) ? undefined : say(target.kind === 'group' ? 'telegram-group-id' : 'telegram-user-id')
  }

  protected override whyNotSent(item: Item, target: Target): Text | undefined {
    if (item.type === 'at' && item.userId === null) return say('telegram-no-everybody')
    if (item.type !== 'reply') return
    const answered = readMessageId(item.messageId)
    if (!answered) return say('telegram-message-id')
    // A reply shows the answered message, which the caller may not be allowed to see if it is in another chat.
    demand(answered.chat === undefined || answered.chat === readChat(target)?.id, say('answered-elsewhere'))
  }

  message(target: Target, items: readonly LoadedItem[], _name: string, changed?: string): Message {
    return new TelegramMessage(this, target, items, changed)
  }

  async recall(target: Target, messageId: string): Promise<void> {
    const data = { chat_id: readChat(target)?.id, message_id: readMessageId(messageId)?.number }
    readResult(await ask(this.bot, 'POST', '/deleteMessage', data), target)
  }
}

/** A chat in Telegram's terms. */
interface Chat {
  /** A negative number, or the `@name` of a public group or channel; in a private chat the number of the user. */
  id: string
  /** The topic of a group that has topics. */
  topic?: number
}

const groupPattern = /^(-[1-9][0-9]{0,15}|@[a-z][a-z0-9_]{3,31})(?::([1-9][0-9]{0,9}))?$/i
const userPattern = /^[1-9][0-9]{0,15}$/

/**
 * Reads a target; `undefined` if there can be no such chat. Groups have negative numbers and users positive ones, so a target of one kind
 * cannot reach a chat of the other. The topic "General" has the number 1, and Telegram refuses a call that names it
 * (tdlib/telegram-bot-api issue 798). Source: https://core.telegram.org/bots/api#sendmessage (`chat_id`, `message_thread_id`)
 */
function readChat({ kind, id }: Target): Chat | undefined {
  if (kind === 'private') return isUser(id) ? { id } : undefined
  const [, group, topic] = groupPattern.exec(id) ?? []
  if (group !== undefined) return { id: group, ...topic !== undefined && topic !== '1' && { topic: Number(topic) } }
}

function isUser(id: string): boolean {
  return userPattern.test(id)
}

/** Reads the ID of a message: its number, with or without its chat in front. `undefined` if there can be no such message. */
function readMessageId(text: string): { chat: string | undefined, number: number } | undefined {
  const [, chat, number] = /^(?:(\S+):)?([1-9][0-9]{0,9})$/.exec(text) ?? []
  if (number !== undefined) return { chat, number: Number(number) }
}

/** The causes of Telegram's words, and those in a private chat if they differ. */
type Row = readonly [words: RegExp, causeId: CauseId, inPrivate?: CauseId]

/**
 * The descriptions of refused calls. The first row that fits counts. Telegram gives no codes, and says that its words may change:
 * https://core.telegram.org/bots/api#making-requests. They are those of its server, tdlib/telegram-bot-api `Client.cpp`
 * (`check_chat_access`, `fail_query_with_error`) and tdlib/td `MessagesManager.cpp` (`process_send_message_fail_error`),
 * `MessageContent.cpp` (`can_send_message_content`), `DialogManager.cpp`; other names in capitals, https://core.telegram.org/api/errors.
 */
const rows: readonly Row[] = [
  [/upgraded to a supergroup/i, 'moved'],
  [/bot was kicked from|bot is not a member of|CHANNEL_PRIVATE/i, 'removed'],
  // The user accepts messages only from Premium accounts.
  [/blocked by the user|USER_IS_BLOCKED|PRIVACY_PREMIUM_REQUIRED/i, 'blocked'],
  [/user is deactivated|can't initiate conversation|can't send messages to (?:the )?bot/i, 'not-friend'],
  [/chat not found|group chat was deleted|(?:PEER|CHAT)_ID_INVALID|CHANNEL_INVALID/i, 'no-such-group', 'not-friend'],
  [/message thread not found|TOPIC_(?:DELETED|ID_INVALID)/i, 'no-such-group'],

  [/TOPIC_CLOSED/, 'all-muted'],
  // The last two: the bot has to join the group of a channel's comments, or to pay.
  [/need administrator rights in the channel|CHAT_ADMIN_REQUIRED|CHAT_GUEST_SEND_FORBIDDEN|ALLOW_PAYMENT_REQUIRED/i, 'forbidden'],
  // A missing right to send pictures or files is about the item only.
  [/rights to send (?:a message|text messages)|no write access|CHAT_(?:WRITE|SEND_PLAIN)_FORBIDDEN|CHAT_RESTRICTED/i, 'muted'],

  [/(?:message|caption|text) is too long|_TOO_LONG/i, 'too-long'],
  [/text is empty|text must be non-empty|MESSAGE_EMPTY/i, 'empty'],
  [/too (?:big|large)|file must be non-empty|wrong file identifier|unsupported extension|\b(?:PHOTO|IMAGE|VIDEO|MEDIA|FILE)_/i, 'media-failed'],

  [/^(?:unauthorized|not found$|(?:bad request: )?logged out)/i, 'logged-out'],
  // Telegram has frozen the account of the bot.
  [/\bFROZEN_/, 'not-permitted'],
]

/** The result of a call about a chat. @throws SendError without one */
function readResult({ status, body, headers }: WebAnswer, { kind }: Target): unknown {
  const { ok, result, error_code: code = status, description, parameters } = fieldsOf(body)
  if (ok === true) return result
  if (ok !== false && status < 400) throw unreadable()
  const { retry_after: wait, migrate_to_chat_id: moved } = fieldsOf(parameters)
  const said = toText(description)
  const [, group, inPrivate = group] = rows.find(([words]) => words.test(said)) ?? []
  throw toFailure(Number(code), {
    words: moved === undefined ? said : `${said}, the ID is ${toText(moved)} now`,
    causeId: kind === 'private' ? inPrivate : group,
    scope: code === 429 ? 'chat' : undefined,
    wait: Number(wait) * 1000 || retryAfterOf(headers),
  })
}

/** In UTF-16 units, which are never fewer than the characters that Telegram counts. https://core.telegram.org/bots/api#sendmessage */
const longestText = 4096
/** As above. https://core.telegram.org/bots/api#sendphoto */
const longestCaption = 1024
/** https://core.telegram.org/bots/api#sendmediagroup */
const largestAlbum = 10
/** In bytes. https://core.telegram.org/bots/api#sending-files */
const largestPhoto = 10 * 2 ** 20
const largestFile = 50 * 2 ** 20
/** The types for `sendVoice`. https://core.telegram.org/bots/api#sendvoice */
const voiceTypes = /^audio\/(?:ogg|opus|mpeg|mp3|mp4|m4a|x-m4a)$/

/** Text with mentions. Without `parse_mode`, nothing in it is markup. */
interface Words {
  text: string
  /** https://core.telegram.org/bots/api#messageentity; counted in UTF-16 units. */
  entities: readonly { type: 'text_mention', offset: number, length: number, user: { id: number } }[]
}

/** A file, and its kind, which names the method and the field for it. */
interface Medium {
  kind: 'Photo' | 'Animation' | 'Video' | 'Voice' | 'Audio' | 'Document'
  file: MediaFile
}

/** The content of one message: a text, or files with a text above or below them. */
interface Post {
  words: Words
  media: Medium[]
  /** Whether the text is above the files. */
  isAbove: boolean
}

/** A call of the API. */
interface Request {
  method: string
  fields: JsonObject
  files: readonly (readonly [field: string, file: MediaFile])[]
}

const nothing: Words = { text: '', entities: [] }

/** A message through a bot on Telegram. There are no look-ups, because bots see no history. */
class TelegramMessage extends WebMessage {
  readonly likeness = ''
  private readonly chat = readChat(this.target) ?? { id: this.target.id }

  /** With the chat, because Telegram numbers messages per chat. Other plugins see the number alone, as from the adapter. */
  override async send(begin: () => void): Promise<Receipt> {
    const { messageIds } = await super.send(begin)
    return { messageIds: messageIds.map(id => `${this.chat.id}:${id}`) }
  }

  /** For the adapter, a topic is a channel, and its group the guild. */
  protected channel(): Promise<Channel> {
    const { chat: { id, topic = id }, target: { kind } } = this
    return Promise.resolve({ id: String(topic), ...kind === 'group' && { guildId: id } })
  }

  protected async toCalls(): Promise<readonly Call[]> {
    const requests = (await this.compose()).flatMap(toRequests)
    const { changed, answered } = this
    if (changed !== undefined) {
      const { fields } = onlyPart(requests)
      return [() => this.change(fields, readMessageId(changed)?.number)]
    }
    const to = { chat_id: this.chat.id, message_thread_id: this.chat.topic }
    const first = { ...to, ...answered && { reply_parameters: { message_id: readMessageId(answered)?.number } } }
    return requests.map((request, index) => () => this.call(request, index === 0 ? first : to))
  }

  private async call({ method, fields, files }: Request, to: JsonObject): Promise<Receipt> {
    const data = { ...to, ...fields }
    const result = readResult(await ask(this.account.bot, 'POST', `/${method}`, files.length > 0 ? toForm(data, files) : data), this.target)
    const messageIds = [result].flat().map(message => toText(fieldsOf(message).message_id)).filter(Boolean)
    if (messageIds.length === 0) throw unreadable()
    return { messageIds }
  }

  /** https://core.telegram.org/bots/api#editmessagetext */
  private async change(fields: JsonObject, id: number | undefined): Promise<Receipt> {
    const answer = await ask(this.account.bot, 'POST', '/editMessageText', { chat_id: this.chat.id, message_id: id, ...fields })
    // This is the answer to a repeated change.
    if (!/message is not modified/i.test(toText(fieldsOf(answer.body).description))) readResult(answer, this.target)
    return { messageIds: [String(id)] }
  }

  /** Divides items into messages, in order. A text joins the files after it, or else those before it. */
  private async compose(): Promise<readonly Post[]> {
    let post: Post = { words: nothing, media: [], isAbove: true }
    const posts = [post]
    const begin = (): void => void posts.push(post = { words: nothing, media: [], isAbove: true })
    let isAfterMention = false
    for (const item of this.items) {
      if (item.type === 'reply') continue
      const isMention = item.type === 'at'
      if (item.type === 'text' || isMention) {
        const added = isMention ? await this.mention(item.userId ?? '') : { ...nothing, text: item.text }
        if (post.media.length > 0 && post.words.text !== '' && post.isAbove) begin()
        post.words = join(post.words, added, isMention || isAfterMention)
        post.isAbove = post.media.length === 0
      } else {
        const medium = await this.read(item)
        const hasRoom = (post.words.text === '' || post.isAbove) && isAlbum([...post.media, medium])
        if (post.media.length > 0 && !hasRoom) begin()
        post.media.push(medium)
      }
      isAfterMention = isMention
    }
    return posts
  }

  private async read(item: LoadedMedia): Promise<Medium> {
    const file = await readMedia(this.account.bot, item, item.type === 'image' ? largestPhoto : largestFile)
    return { kind: kindOf(item.type, file.type), file }
  }

  /** A mention. By name it is plain text; by number it needs a text: the user's name, if the bot can get it. */
  private async mention(userId: string): Promise<Words> {
    if (!isUser(userId)) return { ...nothing, text: `@${userId.replace(/^@/, '')}` }
    const id = Number(userId)
    const text = `@${await this.nameOf(id) ?? userId}`
    return { text, entities: [{ type: 'text_mention', offset: 0, length: text.length, user: { id } }] }
  }

  /** https://core.telegram.org/bots/api#getchatmember */
  private async nameOf(id: number): Promise<string | undefined> {
    const asked = { chat_id: this.chat.id, user_id: id }
    const answer = await ask(this.account.bot, 'POST', '/getChatMember', asked).catch(() => undefined)
    const { first_name: name } = fieldsOf(fieldsOf(fieldsOf(answer?.body).result).user)
    return typeof name === 'string' && name.trim() !== '' ? name : undefined
  }
}

/** Joins texts, with a blank between a mention and a word. */
function join(before: Words, after: Words, hasMention: boolean): Words {
  const isGap = hasMention && before.text !== '' && !/\s$/.test(before.text) && !/^\s/.test(after.text)
  const start = before.text + (isGap ? ' ' : '')
  const moved = after.entities.map(entity => ({ ...entity, offset: entity.offset + start.length }))
  return { text: start + after.text, entities: [...before.entities, ...moved] }
}

function kindOf(type: LoadedMedia['type'], mediaType: string): Medium['kind'] {
  switch (type) {
    case 'image':
      return mediaType === 'image/gif' ? 'Animation' : 'Photo'
    case 'video':
      return 'Video'
    case 'audio':
      return voiceTypes.test(mediaType) ? 'Voice' : 'Audio'
    case 'file':
      return 'Document'
  }
}

function isAlbum(media: readonly Medium[]): boolean {
  return media.length <= largestAlbum && media.every(({ kind }) => kind === 'Photo')
}

/** A text that is too long for a caption becomes a message of its own. */
function toRequests({ words, media, isAbove }: Post): Request[] {
  if (media.length === 0) return toTexts(words)
  if (words.text.length <= longestCaption) return [toUpload(media, words, isAbove)]
  const alone = toUpload(media, nothing, false)
  return isAbove ? [...toTexts(words), alone] : [alone, ...toTexts(words)]
}

/** https://core.telegram.org/bots/api#sendmessage. A part without a visible character would be refused. */
function toTexts({ text, entities }: Words): Request[] {
  let from = 0
  return divideText(text, longestText).flatMap(part => {
    const start = from
    from += part.length
    const mentions = entities.flatMap(entity => {
      const [begin, end] = [Math.max(entity.offset - start, 0), Math.min(entity.offset + entity.length - start, part.length)]
      return end > begin ? [{ ...entity, offset: begin, length: end - begin }] : []
    })
    const fields = { text: part, ...mentions.length > 0 && { entities: mentions }, link_preview_options: { is_disabled: true } }
    return part.trim() === '' ? [] : [{ method: 'sendMessage', fields, files: [] }]
  })
}

/** The calls that https://core.telegram.org/bots/api#sending-files describes. */
function toUpload(media: readonly Medium[], { text, entities }: Words, isAbove: boolean): Request {
  const caption = {
    ...text !== '' && { caption: text, ...isAbove && { show_caption_above_media: true } },
    ...entities.length > 0 && { caption_entities: entities },
  }
  const [first, ...others] = media
  if (first && others.length === 0) {
    const { kind, file } = first
    // Otherwise Telegram would turn a file with a picture into a picture.
    const options = kind === 'Document' ? { disable_content_type_detection: true } : {}
    return { method: `send${kind}`, fields: { ...caption, ...options }, files: [[kind.toLowerCase(), file]] }
  }
  const album = media.map((_, index) => ({ type: 'photo', media: `attach://photo${index}`, ...index === 0 && caption }))
  return { method: 'sendMediaGroup', fields: { media: album }, files: media.map(({ file }, index) => [`photo${index}`, file] as const) }
}
