import { divideText } from '../../lib/words'
import { fieldsOf, type JsonObject } from '../../message/parse'
import { toText } from '../incoming'
import { readMedia, type MediaFile } from '../media'
import type { LoadedItem, LoadedMedia, Receipt } from '../port'
import { ask, onlyPart, unreadable, WebMessage, type Call } from '../web'
import { readResult } from './answer'
import { readChat, readMessageId } from './chat'

/** In UTF-16 units, which are never fewer than the characters that Telegram counts. https://core.telegram.org/bots/api#sendmessage */
export const longestText = 4096
/** As above. https://core.telegram.org/bots/api#sendphoto */
const longestCaption = 1024
/** https://core.telegram.org/bots/api#sendmediagroup */
const largestAlbum = 10
/** In bytes. https://core.telegram.org/bots/api#sending-files */
const largestPhoto = 10 * 2 ** 20
const largestFile = 50 * 2 ** 20
/** What `sendVoice` takes. https://core.telegram.org/bots/api#sendvoice */
const voiceTypes = /^audio\/(?:ogg|opus|mpeg|mp3|mp4|m4a|x-m4a)$/

/** Text in which users may be mentioned. Without `parse_mode` nothing in it is markup. */
interface Words {
  text: string
  /** https://core.telegram.org/bots/api#messageentity; counted in UTF-16 units. */
  entities: readonly { type: 'text_mention', offset: number, length: number, user: { id: number } }[]
}

/** A file, and how it is sent. */
interface Medium {
  method: 'sendPhoto' | 'sendAnimation' | 'sendVideo' | 'sendVoice' | 'sendAudio' | 'sendDocument'
  /** The field of the form that has the file. */
  field: string
  file: MediaFile
}

/** What is to be one message: a text, or files with a text above or below them. */
interface Post {
  words: Words
  media: readonly Medium[]
  isAbove: boolean
}

/** A call of the API. */
interface Request {
  method: string
  fields: JsonObject
  files: readonly (readonly [field: string, file: MediaFile])[]
}

const nothing: Words = { text: '', entities: [] }

/** A message through a bot of Telegram, which shows bots no history: it is never looked up. */
export class TelegramMessage extends WebMessage {
  readonly likeness = ''
  private readonly chat = readChat(this.target) ?? { id: this.target.id }
  /** The adapter takes a topic for a channel, and its group for the guild. */
  protected override readonly event = this.target.kind === 'group' ? { guild: { id: this.chat.id } } : {}

  /** Telegram counts messages in each chat by itself. What other plugins are shown is the number alone, as the adapter has it. */
  override async send(begin: () => void): Promise<Receipt> {
    const { messageIds } = await super.send(begin)
    return { messageIds: messageIds.map(id => `${this.chat.id}:${id}`) }
  }

  protected channel(): Promise<string> {
    return Promise.resolve(String(this.chat.topic ?? this.chat.id))
  }

  protected async prepare(): Promise<readonly Call[]> {
    const requests = (await this.compose()).flatMap(toRequests)
    const { changed } = this
    if (changed !== undefined) {
      const { fields } = onlyPart(requests)
      return [() => this.change(fields, readMessageId(changed)?.number)]
    }
    const reply = this.items.find(item => item.type === 'reply')
    const to = { chat_id: this.chat.id, message_thread_id: this.chat.topic }
    const first = { ...to, ...reply && { reply_parameters: { message_id: readMessageId(reply.messageId)?.number } } }
    return requests.map((request, index) => () => this.call(request, index === 0 ? first : to))
  }

  private async call({ method, fields, files }: Request, to: JsonObject): Promise<Receipt> {
    const data = { ...to, ...fields }
    const result = readResult(await ask(this.account.bot, 'POST', `/${method}`, files.length > 0 ? toForm(data, files) : data), this.target)
    const messageIds = [result].flat().flatMap(message => toId(fieldsOf(message).message_id))
    if (messageIds.length === 0) throw unreadable()
    return { messageIds }
  }

  /** https://core.telegram.org/bots/api#editmessagetext */
  private async change(fields: JsonObject, id: number | undefined): Promise<Receipt> {
    const answer = await ask(this.account.bot, 'POST', '/editMessageText', { chat_id: this.chat.id, message_id: id, ...fields })
    // That is what it says of a call that was carried out before.
    if (!/message is not modified/i.test(toText(fieldsOf(answer.body).description))) readResult(answer, this.target)
    return { messageIds: toId(id) }
  }

  /** The items in their order. A text goes with the files after it, otherwise with those before it. */
  private async compose(): Promise<readonly Post[]> {
    const posts: Post[] = []
    let post: Post = { words: nothing, media: [], isAbove: true }
    let last: LoadedItem['type'] | undefined
    const close = (): void => {
      posts.push(post)
      post = { words: nothing, media: [], isAbove: true }
    }
    for (const item of this.items) {
      if (item.type === 'reply') continue
      const { words, media, isAbove } = post
      if (item.type === 'text' || item.type === 'at') {
        const added = item.type === 'text' ? { ...nothing, text: item.text } : await this.mention(item.userId ?? '')
        if (media.length > 0 && words.text !== '' && isAbove) close()
        post = { ...post, words: join(post.words, added, item.type === 'at' || last === 'at'), isAbove: post.media.length === 0 }
      } else {
        const medium = await this.read(item)
        if (media.length > 0 && !((words.text === '' || isAbove) && isAlbum([...media, medium]))) close()
        post = { ...post, media: [...post.media, medium] }
      }
      last = item.type
    }
    close()
    return posts
  }

  private async read(item: LoadedMedia): Promise<Medium> {
    const file = await readMedia(this.account.bot, item, item.type === 'image' ? largestPhoto : largestFile)
    switch (item.type) {
      case 'image':
        return file.type === 'image/gif' ? { method: 'sendAnimation', field: 'animation', file } : { method: 'sendPhoto', field: 'photo', file }
      case 'video':
        return { method: 'sendVideo', field: 'video', file }
      case 'audio':
        return voiceTypes.test(file.type) ? { method: 'sendVoice', field: 'voice', file } : { method: 'sendAudio', field: 'audio', file }
      case 'file':
        return { method: 'sendDocument', field: 'document', file }
    }
  }

  /** A mention by name is one in itself. One by a number needs a text, which is the user's name where the bot may know it. */
  private async mention(userId: string): Promise<Words> {
    const id = Number(userId)
    if (Number.isNaN(id)) return { ...nothing, text: `@${userId.replace(/^@/, '')}` }
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

/** Joins texts. A blank keeps a mention from growing together with a word. */
function join(before: Words, after: Words, hasMention: boolean): Words {
  const isGap = hasMention && before.text !== '' && !/\s$/.test(before.text) && !/^\s/.test(after.text)
  const start = before.text + (isGap ? ' ' : '')
  const moved = after.entities.map(entity => ({ ...entity, offset: entity.offset + start.length }))
  return { text: start + after.text, entities: [...before.entities, ...moved] }
}

function isAlbum(media: readonly Medium[]): boolean {
  return media.length <= largestAlbum && media.every(({ method }) => method === 'sendPhoto')
}

/** A text that is too long for a caption goes by itself. */
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
    const { method, field, file } = first
    // Otherwise a picture that is to arrive as a file becomes a picture.
    const options = method === 'sendDocument' ? { disable_content_type_detection: true } : {}
    return { method, fields: { ...caption, ...options }, files: [[field, file]] }
  }
  const album = media.map(({ field }, index) => ({ type: field, media: `attach://${field}${index}`, ...index === 0 && caption }))
  return { method: 'sendMediaGroup', fields: { media: album }, files: media.map(({ field, file }, index) => [`${field}${index}`, file] as const) }
}

/** https://core.telegram.org/bots/api#making-requests: what is not a text is JSON. */
function toForm(fields: JsonObject, files: Request['files']): FormData {
  const form = new FormData()
  for (const [field, value] of Object.entries(fields)) {
    if (value !== undefined) form.append(field, typeof value === 'string' ? value : JSON.stringify(value))
  }
  for (const [field, { data, name, type }] of files) form.append(field, new Blob([data], { type }), name)
  return form
}

function toId(value: unknown): string[] {
  return typeof value === 'number' ? [String(value)] : []
}
