import { h, type MessageEncoder } from 'koishi'
import { RelayError } from '../../errors'
import { sha256 } from '../../lib/crypto'
import type { Item, Target } from '../../message/model'
import { fieldsOf, isObject, type JsonObject } from '../../message/parse'
import { toText } from '../incoming'
import { BotAccount, type PlatformSupport } from '../koishi'
import { readMedia } from '../media'
import { SendError, type Contact, type LoadedItem, type LoadedMedia, type Message, type Receipt } from '../port'
import { ask, onlyPart, unreadable, WebMessage, type Call } from '../web'
import { readData } from './answer'
import { divide, longestText, toPost, type Content } from './content'
import { incomingLark } from './incoming'
import { isMessageId, readPlace, type Place } from './place'

/** Feishu and Lark, through `@satorijs/adapter-lark` (3.12.4). Koishi calls the platform `lark` in both cases. */
export const lark: PlatformSupport = {
  owns: bot => bot.adapterName === 'lark',
  account: (bot, presence) => new LarkAccount(bot, presence),
  incoming: incomingLark,
}

/** The most bytes of a picture, and of any other file. */
const most = { picture: 10 * 2 ** 20, file: 30 * 2 ** 20 }

/** An app with the ability of a bot. */
class LarkAccount extends BotAccount {
  readonly readsFiles = true
  readonly takesFiles = true
  readonly longestText = longestText
  /** A further call does no harm for an hour, see {@link LarkMessage.repeatableFor}; after that nobody can tell. */
  readonly retriesUnanswered = false

  protected checkTarget(target: Target): void {
    if (readPlace(target)) return
    const forms = target.kind === 'group' ? 'oc_… of a group' : 'ou_…, on_…, user ID or e-mail address of a user'
    throw new RelayError('bad-request', `this is not the ${forms}, with :om_… of the first message for a topic`)
  }

  protected checkItem(item: Item): void {
    const isWrong = item.type === 'at' && item.userId !== null && !/^(?!all$)[\w.-]{1,100}$/i.test(item.userId)
    if (isWrong) throw new RelayError('bad-request', 'the ID of a mention must be the ou_…, on_… or user ID of a user')
  }

  protected refusal(item: Item): string | undefined {
    return item.type === 'reply' && !isMessageId(item.messageId) ? 'this is not the om_… of a message' : undefined
  }

  update(target: Target, messageId: string, items: readonly LoadedItem[], name: string): Message {
    return new LarkMessage(this, target, items, name, messageId)
  }

  async recall(_target: Target, messageId: string): Promise<void> {
    if (!isMessageId(messageId)) throw new SendError('refused', undefined, { isFinal: true })
    readData(await ask(this.bot, 'DELETE', `/im/v1/messages/${messageId}`))
  }

  async groups(): Promise<Contact[]> {
    const groups: Contact[] = []
    let token = ''
    do {
      const page = token && `&page_token=${encodeURIComponent(token)}`
      const data = readData(await ask(this.bot, 'GET', `/im/v1/chats?page_size=100${page}`))
      if (!Array.isArray(data.items)) throw unreadable()
      for (const { chat_id: id, name } of data.items.filter(isObject)) groups.push({ id: toText(id), name: toText(name) })
      token = data.has_more === true ? toText(data.page_token) : ''
    } while (token)
    return groups
  }

  message(target: Target, items: readonly LoadedItem[], name: string): Message {
    return new LarkMessage(this, target, items, name)
  }
}

/** Extensions by the types of files that the platform shows by themselves. */
const fileTypes: readonly [type: string, extensions: RegExp][] = [
  ['pdf', /\.pdf$/i], ['doc', /\.docx?$/i], ['xls', /\.xlsx?$/i], ['ppt', /\.pptx?$/i],
]

class LarkMessage extends WebMessage {
  readonly likeness: string
  /** "Requests with the same uuid send at most one message within an hour", less what a call may take on its way. */
  protected override readonly repeatableFor = 55 * 60_000
  private readonly place: Place

  constructor(account: LarkAccount, target: Target, items: readonly LoadedItem[], name: string, changed?: string) {
    super(account, target, items, changed)
    // A part of a message that was refused as a whole may have its name.
    this.likeness = `${name} ${items.length}`
    const place = readPlace(target)
    if (!place) throw new RelayError('bad-request', 'there is no such chat on this platform')
    this.place = place
  }

  protected channel(): Promise<string> {
    return Promise.resolve(this.place.id)
  }

  protected async prepare(): Promise<Call[]> {
    const { changed } = this
    if (changed !== undefined) {
      const content = onlyPart(await this.contents())
      return [() => this.change(changed, content)]
    }
    if (this.answered !== undefined) await this.checkAnswered(this.answered)
    const contents = await this.contents()
    return contents.map((content, index) => () => this.post(content, `${this.likeness} ${index}`))
  }

  /** Each message that the encoder makes of it then answers the first one of the topic. */
  protected override async adapt(encoder: MessageEncoder): Promise<void> {
    const { answered, place: { root } } = this
    if (answered !== undefined) await this.checkAnswered(answered)
    if (root === undefined) return
    // As after a message in that topic; only that of a quote has to be told so.
    encoder.referrer = { type: 'im.message.receive_v1', event: { message: { message_id: root, thread_id: root } } }
    encoder.session.elements = h.transform(encoder.session.elements ?? [], { quote: attrs => h('quote', { ...attrs, replyInThread: true }) })
  }

  /** The message to reply to, which may be the first one of a topic. */
  private get answered(): string | undefined {
    return this.items.find(item => item.type === 'reply')?.messageId ?? this.place.root
  }

  /**
   * A reply arrives where the answered message is, whichever chat the caller may write to: so that has to be the chat of the target.
   * Sources: https://open.feishu.cn/document/server-docs/im-v1/message/get and …/im-v1/chat/get-2
   */
  private async checkAnswered(id: string): Promise<void> {
    const { place } = this
    const { items } = await this.read(`/im/v1/messages/${id}`)
    const { chat_id: chat, sender } = fieldsOf(Array.isArray(items) ? items[0] : undefined)
    const isThere = place.type === 'chat_id'
      ? chat === place.id
      : fieldsOf(sender).id === place.id && (await this.read(`/im/v1/chats/${encodeURIComponent(toText(chat))}`)).chat_mode === 'p2p'
    if (!isThere) throw new SendError('refused', 'the message to reply to is not in this chat', { isFinal: true })
  }

  /** Asks for something that a send needs. @throws SendError */
  private async read(path: string): Promise<JsonObject> {
    return forThisMessage(async () => readData(await ask(this.account.bot, 'GET', path)))
  }

  private async contents(): Promise<Content[]> {
    const items = this.items.filter(({ type }) => type !== 'reply')
    const [item] = items
    if (item?.type === 'file' || item?.type === 'video' || item?.type === 'audio') return [await this.uploadFile(item)]
    const keys = new Map<LoadedItem, string>()
    for (const picture of items) if (picture.type === 'image') keys.set(picture, await this.uploadPicture(picture))
    const keyOf = (picture: LoadedMedia): string => keys.get(picture) ?? ''
    if (item?.type === 'image' && items.length === 1) return [{ type: 'image', value: { image_key: keyOf(item) } }]
    return divide(items).map(part => toPost(part, keyOf))
  }

  private async uploadPicture(item: LoadedMedia): Promise<string> {
    const { data, name, type } = await readMedia(this.account.bot, item, most.picture)
    const form = new FormData()
    form.append('image_type', 'message')
    form.append('image', new File([data], name, { type }))
    return this.upload('/im/v1/images', form, 'image_key')
  }

  /** A video must be MP4, and a voice message Opus; any other one goes as a file, which loses nothing but the player. */
  private async uploadFile(item: LoadedMedia): Promise<Content> {
    const { data, name, type } = await readMedia(this.account.bot, item, most.file)
    const isVideo = item.type === 'video' && (type === 'video/mp4' || /\.mp4$/i.test(name))
    const isVoice = item.type === 'audio' && (type === 'audio/opus' || /\.opus$/i.test(name))
    const form = new FormData()
    const [known = 'stream'] = fileTypes.find(([, extensions]) => extensions.test(name)) ?? []
    form.append('file_type', isVideo ? 'mp4' : isVoice ? 'opus' : known)
    form.append('file_name', name)
    form.append('file', new File([data], name, { type }))
    return { type: isVideo ? 'media' : isVoice ? 'audio' : 'file', value: { file_key: await this.upload('/im/v1/files', form, 'file_key') } }
  }

  private upload(path: string, form: FormData, field: string): Promise<string> {
    return forThisMessage(async () => {
      const key = toText(readData(await ask(this.account.bot, 'POST', path, form))[field])
      if (key) return key
      throw unreadable()
    })
  }

  /** https://open.feishu.cn/document/server-docs/im-v1/message/update */
  private async change(id: string, { type, value }: Content): Promise<Receipt> {
    const { account: { bot }, target: { kind } } = this
    readData(await ask(bot, 'PUT', `/im/v1/messages/${id}`, { msg_type: type, content: JSON.stringify(value) }), kind)
    return { messageIds: [id] }
  }

  private async post({ type, value }: Content, name: string): Promise<Receipt> {
    const { account: { bot }, target: { kind }, place, answered } = this
    const body = { msg_type: type, content: JSON.stringify(value), uuid: sha256(name).toString('base64url') }
    const data = readData(await (answered === undefined
      ? ask(bot, 'POST', `/im/v1/messages?receive_id_type=${place.type}`, { receive_id: place.id, ...body })
      : ask(bot, 'POST', `/im/v1/messages/${answered}/reply`, { ...body, ...place.root !== undefined && { reply_in_thread: true } })), kind)
    const id = toText(data.message_id)
    return { messageIds: id ? [id] : [] }
  }
}

/** Where the app has no permission for what a message needs besides, that is about this message only: others may be sent. */
async function forThisMessage<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    const isForbidden = error instanceof SendError && error.causeId === 'not-permitted'
    throw isForbidden ? new SendError('refused', error.message, { isFinal: true }) : error
  }
}
