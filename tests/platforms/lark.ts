import type LarkAdapter from '@satorijs/adapter-lark'
import type { Bot, Context } from 'koishi'
import assert from 'node:assert/strict'
import { fieldsOf, toText, type JsonObject } from '../../src/lib/shape'
import type { Config } from '../../src'
import type { AdapterEntry } from '../support/adapter'
import type { TestRelay } from '../support/relay'
import { loadPlatform, relayWith, type Arrived, type Platform } from './platform'
import { PlatformServer, type Answer, type Call, type SentFile } from './server'

/** A group, a user, and the bot itself. It can write to all but those whose IDs end with `gone`. */
export const group = 'oc_84983ff6516d731e5b5f68d4ea2e1da5'
export const user = 'ou_7d8a6e6df7621556ce0d21922b676706'
export const self = 'ou_155184d1e73cbfb8973e5a9e698e74f2'

/** A message in a chat. */
export interface Sent {
  id: string
  /** Where to: an ID, or the message that it answers. */
  to: string
  inThread: boolean
  type: string
  /** As members see it: a mention in brackets, and so the name of a picture or file; a mark in front of what is not literal text. */
  text: string
}

/**
 * Feishu as its documentation has it (https://open.feishu.cn/document/server-docs/im-v1/message/create and the pages beside it), with its
 * answers word for word.
 */
export class Lark implements Platform {
  /** What has arrived, in its order. */
  readonly messages: Sent[] = []
  private said = 0
  /** The requests that would send something. */
  get sends(): Call[] {
    return this.server.callsTo(/\/im\/v1\/messages(?:\/[^/]+\/reply)?$/).filter(({ method }) => method === 'POST')
  }

  readonly recalled: string[] = []
  readonly uploads = new Map<string, { name: string, type: string, file: SentFile | undefined }>()
  private readonly byUuid = new Map<string, Sent>()
  private token = 't-g1044qeGEDXTB6NDJOGV4JQCYDGHRBARFTGT1234'
  private last = 0

  private constructor(readonly server: PlatformServer) {}

  static async start(): Promise<Lark> {
    const holder: { lark?: Lark } = {}
    const server = await PlatformServer.start(call => holder.lark?.handle(call) ?? { status: 503 })
    return holder.lark = new Lark(server)
  }

  /** A relay with a bot of this platform. */
  async relay(config: Config): Promise<TestRelay> {
    return endRefresh(await relayWith([`lark:${self}`], app => loadPlatform(app, this), config))
  }

  get arrived(): readonly Arrived[] {
    return this.messages.map(({ to, text }) => ({ to: `feishu:group:${to}`, text, isAnswer: to.startsWith('om_') }))
  }

  get adapter(): AdapterEntry {
    const config = {
      appId: 'cli_9f427eec54ae901b', appSecret: 'secret', endpoint: `${this.server.url}/open-apis`, proxyAgent: '',
      protocol: 'http', path: '/feishu', encryptKey: 'key',
    }
    return { name: '@satorijs/adapter-lark', config }
  }

  clear(): void {
    this.server.clear()
    this.messages.length = 0
  }

  /** A member writes to the bot. */
  async say(relay: TestRelay, message: JsonObject, content: object): Promise<void> {
    const event = {
      sender: { sender_id: { union_id: 'on_1', open_id: user }, sender_type: 'user', tenant_key: '736588c9260f175e' },
      message: {
        message_id: `om_${++this.said}`, create_time: '1609073151345', update_time: '1609073151345', chat_id: group,
        chat_type: 'group', message_type: 'text', content: JSON.stringify(content), ...message,
      },
    }
    const header = { event_id: 'e', event_type: 'im.message.receive_v1', create_time: '1', token: '', app_id: 'cli_9f427eec54ae901b', tenant_key: 't' }
    const { status } = await fetch(`${relay.url}/feishu`, {
      method: 'POST', body: JSON.stringify({ schema: '2.0', header, event }), headers: { 'content-type': 'application/json' },
    })
    assert.equal(status, 200)
  }

  private handle(call: Call): Answer {
    const { method, path, headers, query } = call
    const name = path.replace('/open-apis', '')
    if (name === '/auth/v3/tenant_access_token/internal') return ok({}, { tenant_access_token: this.token, expire: 7200 })
    if (headers.authorization !== `Bearer ${this.token}`) {
      return refuse(99991663, 'Invalid access token for authorization. Please make a request with token attached.')
    }
    if (name === '/bot/v3/info') return ok({}, { bot: { activate_status: 2, app_name: 'name', open_id: self } })
    const [, id = '', isReply] = /^\/im\/v1\/messages\/([^/]+)(\/reply)?$/.exec(name) ?? []
    if (name === '/im/v1/messages' && method === 'POST') return this.send(call, String(call.fields.receive_id), query.get('receive_id_type'))
    if (isReply) return this.send(call, id, 'message_id')
    if (id && method === 'DELETE') {
      this.recalled.push(id)
      return ok({})
    }
    if (id && method === 'PUT') {
      const message = this.messages.find(each => each.id === id)
      if (!message) return refuse(230011, 'The message was withdrawn.')
      message.text = this.render(String(call.fields.msg_type), fieldsOf(JSON.parse(String(call.fields.content))))
      return ok({ message_id: id, msg_type: call.fields.msg_type, updated: true })
    }
    if (id) {
      const chat = id === 'om_p2p' ? 'oc_p2p' : id === 'om_elsewhere' ? 'oc_elsewhere' : group
      return ok({ items: [{ message_id: id, msg_type: 'text', chat_id: chat, sender: { id: user }, body: { content: '{"text":"x"}' } }] })
    }
    if (name === '/im/v1/images' || name === '/im/v1/files') return this.upload(call)
    if (name === '/im/v1/chats') return list(query.get('page_token'))
    if (name.startsWith('/im/v1/chats/')) return ok({ name: 'ops', chat_mode: name.endsWith('p2p') ? 'p2p' : 'group' })
    return { status: 404, body: { code: 99991201, msg: 'resource not find' } }
  }

  private upload({ fields, files }: Call): Answer {
    const file = files.get('image') ?? files.get('file')
    if (!file?.data.length) return refuse(234010, 'File\'s size can\'t be 0.')
    if (files.has('image') && file.data.subarray(1, 4).toString() !== 'PNG') return refuse(234011, 'Can\'t regonnize the image format.')
    const key = `${files.has('image') ? 'img' : 'file'}_v3_${++this.last}`
    this.uploads.set(key, { name: toText(fields.file_name) || file.name, type: toText(fields.file_type ?? fields.image_type), file })
    return files.has('image') ? ok({ image_key: key }) : ok({ file_key: key })
  }

  private send({ fields }: Call, to: string, kind: string | null): Answer {
    const { msg_type: type, content, uuid } = fields
    const earlier = this.byUuid.get(toText(uuid))
    if (toText(uuid).length > 50 || typeof content !== 'string') return refuse(230001, invalid)
    if (earlier) return ok({ message_id: earlier.id })
    if (kind === 'chat_id' && to.endsWith('gone')) return refuse(230002, 'The bot can not be outside the group.')
    if (kind === 'open_id' && to.endsWith('gone')) return refuse(230013, 'Bot has NO availability to this user.')
    if (Buffer.byteLength(JSON.stringify(fields)) > 30 * 1024) return refuse(230025, 'The length of the message content reaches its limit.')
    const text = this.render(String(type), fieldsOf(JSON.parse(content)))
    const message = { id: `om_${++this.last}`, to, inThread: fields.reply_in_thread === true, type: String(type), text }
    this.messages.push(message)
    if (typeof uuid === 'string') this.byUuid.set(uuid, message)
    return ok({ message_id: message.id, msg_type: type, create_time: '1615380573411', chat_id: group, sender: { id: 'cli_9f427eec54ae901b' } })
  }

  private render(type: string, content: JsonObject): string {
    const nameOf = (key: unknown): string => this.uploads.get(String(key))?.name ?? 'nothing'
    if (type !== 'post') return `[${nameOf(content.image_key ?? content.file_key)}]`
    const { content: paragraphs } = fieldsOf(content.zh_cn)
    assert(Array.isArray(paragraphs))
    return paragraphs.map((nodes: JsonObject[]) => nodes.map(({ tag, text, user_id: id, image_key: key, un_escape: isEscaped }) => {
      if (tag === 'at') return `[@${String(id)}]`
      if (tag === 'img' && nodes.length === 1) return `[${nameOf(key)}]`
      return tag === 'text' && !isEscaped ? String(text) : `[live: ${String(text)}]`
    }).join('')).join('\n')
  }
}

/** Clears the timer of 20 minutes that the adapter never clears. */
export function endRefresh(relay: TestRelay): TestRelay {
  const isBot = (bot: Bot): bot is LarkAdapter<Context> => bot.platform === 'lark'
  for (const bot of relay.app.bots.filter(isBot)) clearTimeout(bot._refresher)
  return relay
}

const invalid = 'Your request contains an invalid request parameter.'

function ok(data: object, more: object = {}): Answer {
  return { body: { code: 0, msg: 'success', data, ...more } }
}

/** An answer of failure, as the platform has it. */
export function refuse(code: number, msg: string, status = 400, headers: Record<string, string> = {}): Answer {
  return { status, headers, body: { code, msg, error: { log_id: '2026012808582760611D29F2C180A6A6C0' } } }
}

/** The groups on two pages. */
function list(token: string | null): Answer {
  return token === null
    ? ok({ items: [{ chat_id: group, name: 'ops', tenant_key: 't' }], has_more: true, page_token: 'a=' })
    : ok({ items: token === 'a=' ? [{ chat_id: 'oc_2', name: '值班' }] : [], has_more: false, page_token: '' })
}
