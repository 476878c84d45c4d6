import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { fieldsOf, toText, type JsonObject } from '../../src/lib/shape'
import type { Config } from '../../src'
import type { AdapterEntry } from '../support/adapter'
import type { TestRelay } from '../support/relay'
import { loadPlatform, relayWith, type Arrived, type Platform } from './platform'
import { PlatformServer, type Answer, type Call } from './server'

/** A group with the topics 1 (General) and 45, a user, and the bot itself. */
export const group = '-1001234567890'
export const topic = '45'
export const user = '7654321'
export const self = '110201543'
const token = `${self}:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw`

/** A message in a chat. */
export interface Sent {
  id: number
  chat: string
  topic?: string
  replyTo?: number
  method: string
  /** Without the blanks around it that Telegram takes away. */
  text: string
  /** The parts of the text that mention somebody, and whom. */
  mentions?: [text: string, id: number][]
  isAbove?: true
  files?: { name: string, type: string, data: string }[]
}

/** What is refused for a chat, by its ID. */
const refused: Readonly<Record<string, Answer>> = {
  '-100404': refuse(400, 'Bad Request: chat not found'),
  '404': refuse(400, 'Bad Request: chat not found'),
  '-100403': refuse(403, 'Forbidden: bot was kicked from the supergroup chat'),
  '403': refuse(403, 'Forbidden: bot was blocked by the user'),
  '405': refuse(403, 'Forbidden: bot can\'t initiate conversation with a user'),
  '-4001': refuse(400, 'Bad Request: group chat was upgraded to a supergroup chat', { migrate_to_chat_id: -1004001 }),
  '-100400': refuse(400, 'Bad Request: not enough rights to send text messages to the chat'),
  '-100401': refuse(400, 'Bad Request: need administrator rights in the channel chat'),
  '-100405': refuse(400, 'Bad Request: CHAT_GUEST_SEND_FORBIDDEN'),
  '-100406': refuse(400, 'Bad Request: ALLOW_PAYMENT_REQUIRED_5'),
  '406': refuse(400, 'Bad Request: PRIVACY_PREMIUM_REQUIRED'),
}

/**
 * The Bot API as https://core.telegram.org/bots/api describes it, with the words of its server (tdlib/telegram-bot-api `Client.cpp`,
 * tdlib/td `MessageContent.cpp`).
 */
export class Telegram implements Platform {
  /** What has arrived, in its order. */
  readonly messages: Sent[] = []
  readonly deleted: string[] = []
  private last = 0
  private updates = 0

  private constructor(readonly server: PlatformServer) {}

  static async start(): Promise<Telegram> {
    const holder: { telegram?: Telegram } = {}
    const server = await PlatformServer.start(call => holder.telegram?.handle(call) ?? { status: 503 })
    return holder.telegram = new Telegram(server)
  }

  /** The calls that would send something. */
  get sends(): Call[] {
    return this.server.callsTo(/\/send[A-Z]/)
  }

  get adapter(): AdapterEntry {
    const config = {
      protocol: 'server', token, path: '/telegram', selfUrl: 'https://bot.example.com', slash: false, endpoint: this.server.url, files: { server: false },
    }
    return { name: '@satorijs/adapter-telegram', config }
  }

  clear(): void {
    this.server.clear()
    this.messages.length = 0
  }

  /** A relay with a bot of this platform. */
  relay(config: Config): Promise<TestRelay> {
    return relayWith([`telegram:${self}`], app => loadPlatform(app, this), config)
  }

  get arrived(): readonly Arrived[] {
    return this.messages.map(({ chat, text, replyTo }) => ({ to: `telegram:group:${chat}`, text, isAnswer: replyTo !== undefined }))
  }

  /** A member writes something that the bot gets. */
  async say(relay: TestRelay, text: string, more: JsonObject = {}): Promise<void> {
    const entities = [...text.matchAll(/(?:^|(?<=\s))\/\w+(?:@\w+)?/g)].map(({ index, 0: { length } }) => ({ type: 'bot_command', offset: index, length }))
    const message = {
      message_id: ++this.last, date: 1_700_000_000, text, ...entities.length > 0 && { entities },
      from: { id: Number(user), is_bot: false, first_name: 'Ann', username: 'ann_x' },
      chat: { id: Number(group), type: 'supergroup', title: 'ops', is_forum: true }, ...more,
    }
    const { status } = await fetch(`${relay.url}/telegram?token=${token}`, {
      method: 'POST', body: JSON.stringify({ update_id: ++this.updates, message }), headers: { 'content-type': 'application/json' },
    })
    assert.equal(status, 200)
  }

  private handle({ path, fields: given, files }: Call): Answer | Promise<Answer> {
    const [, key, method = ''] = /^\/bot([^/]+)\/(\w+)$/.exec(path) ?? []
    if (key !== token) return refuse(401, 'Unauthorized')
    // A form has JSON in its fields.
    const fields = files.size > 0 ? readForm(given) : given
    switch (method) {
      case 'getMe':
        return ok({ id: Number(self), is_bot: true, first_name: 'Relay', username: 'relay_bot' })
      case 'getUserProfilePhotos':
        return ok({ total_count: 0, photos: [] })
      case 'getChatMember':
        if (fields.user_id !== Number(user)) return refuse(400, 'Bad Request: member not found')
        return ok({ status: 'member', user: { id: Number(user), is_bot: false, first_name: 'Ann' } })
      case 'deleteMessage':
        if (fields.message_id === 1) return refuse(400, 'Bad Request: message can\'t be deleted')
        this.deleted.push(`${String(fields.chat_id)}:${String(fields.message_id)}`)
        return ok(true)
      case 'editMessageText':
        return this.edit(fields)
      case 'setWebhook':
        return ok(true)
      case 'getWebhookInfo':
        return ok({ url: '' })
      case 'getUpdates':
        return delay(20, ok([]))
      default:
        return /^send[A-Z]/.test(method) ? this.send(method, fields, files) : refuse(404, 'Not Found: method not found')
    }
  }

  private edit({ chat_id: chat, message_id: id, ...fields }: JsonObject): Answer {
    const message = this.messages.find(each => each.id === id && each.chat === chat)
    const { text, entities } = readText(fields)
    if (!message) return refuse(400, 'Bad Request: message to edit not found')
    if (text.length > 4096) return refuse(400, 'Bad Request: message is too long')
    if (message.text === text.trim()) {
      return refuse(400, 'Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message')
    }
    Object.assign(message, { text: text.trim() }, entities.length > 0 && { mentions: entities })
    return ok({ message_id: id, date: 1_700_000_000, edit_date: 1_700_000_001, chat: { id: chat } })
  }

  private send(method: string, fields: JsonObject, files: Call['files']): Answer {
    const { chat_id: chat, reply_parameters: reply } = fields
    const thread = toText(fields.message_thread_id)
    const refusal = refused[String(chat)]
    if (refusal) return refusal
    if (thread !== '' && thread !== topic) return refuse(400, 'Bad Request: message thread not found')
    const replyTo = fieldsOf(reply).message_id
    if (replyTo === 404) return refuse(400, 'Bad Request: message to be replied not found')
    const album = Array.isArray(fields.media) ? fields.media.map(fieldsOf) : [fields]
    const { text: content, entities, show_caption_above_media: isAbove } = readText(album[0] ?? fields)
    if (content.length > (files.size > 0 ? 1024 : 4096)) {
      return refuse(400, `Bad Request: message ${files.size > 0 ? 'caption ' : ''}is too long`)
    }
    if (files.size === 0 && content.trim() === '') return refuse(400, 'Bad Request: message text is empty')
    const sent = [...files.values()].map(({ name, type, data }) => ({ name, type, data: data.toString() }))
    if (sent.some(({ data }) => data === 'no picture')) return refuse(400, 'Bad Request: IMAGE_PROCESS_FAILED')
    const ids = album.map(() => ++this.last)
    this.messages.push({
      id: ids[0] ?? 0, chat: String(chat), method, text: content.trim(),
      ...thread !== '' && { topic: thread },
      ...typeof replyTo === 'number' && { replyTo },
      ...entities.length > 0 && { mentions: entities },
      ...isAbove === true && { isAbove },
      ...sent.length > 0 && { files: sent },
    })
    const messages = ids.map(id => ({ message_id: id, date: 1_700_000_000, chat: { id: chat } }))
    return ok(method === 'sendMediaGroup' ? messages : messages[0])
  }
}

/** The text or caption of a message. */
function readText(fields: JsonObject) {
  const text = toText(fields.text ?? fields.caption)
  const list: unknown = fields.entities ?? fields.caption_entities ?? []
  assert(Array.isArray(list))
  const entities = list.map((entity: unknown): [string, number] => {
    const { type, offset, length, user: mentioned } = fieldsOf(entity)
    assert.equal(type, 'text_mention')
    return [text.slice(Number(offset), Number(offset) + Number(length)), Number(fieldsOf(mentioned).id)]
  })
  return { text, entities, show_caption_above_media: fields.show_caption_above_media }
}

function readForm(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => {
    return [name, typeof value === 'string' && /^(?:[[{]|true$)/.test(value) ? JSON.parse(value) : value]
  }))
}

function ok(result: unknown): Answer {
  return { body: { ok: true, result } }
}

/** https://core.telegram.org/bots/api#responseparameters */
export function refuse(code: number, description: string, parameters?: object): Answer {
  return { status: code, body: { ok: false, error_code: code, description, ...parameters && { parameters } } }
}
