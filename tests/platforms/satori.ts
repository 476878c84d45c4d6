import { h, Universal, type Context } from 'koishi'
import { fieldsOf, type JsonObject } from '../../src/lib/shape'
import type { AdapterEntry } from '../support/adapter'
import { loadPlatform, type Arrived, type Platform } from './platform'
import { PlatformServer, type Answer, type Call, type Fault } from './server'

/** The token of every server. */
const token = 'a-token'

/** A message in the ledger. */
export interface Entry {
  id: string
  channelId: string
  /** As it was sent. */
  content: string
  /** As a server reads it. */
  parts: Part[]
  at: number
}

/** A text as it is, or another element as its markup. */
export type Part = [type: string, content: string]

export interface Login {
  platform?: string
  id?: string
  features?: readonly string[]
}

/** The calls that the login of LuckyLilliaBot declares and this server has. */
export const features = [
  'message.create', 'message.delete', 'message.list', 'user.channel.create', 'guild.list', 'channel.list', 'friend.list', 'guild.plain',
]

/**
 * A Satori server for one login, written from https://satori.chat/zh-CN/protocol/ and, where that says nothing, from the server of Koishi
 * (satorijs/satori `packages/server/src/index.ts`).
 */
export class Satori implements Platform {
  readonly ledger: Entry[] = []
  /** What a message becomes in the history. */
  show = (content: string): string => content
  private ids = 0
  private sn = 0
  private dispose: () => void = () => undefined

  private constructor(private readonly login: Required<Login>, readonly server: PlatformServer) {}

  static async start({ platform = 'llonebot', id = '10000', features: given = features }: Login = {}): Promise<Satori> {
    const holder: { satori?: Satori } = {}
    const server = await PlatformServer.start(call => holder.satori?.handle(call) ?? { status: 503 }, socket => {
      socket.addEventListener('message', ({ data }) => {
        const { op, body } = fieldsOf(typeof data === 'string' ? JSON.parse(data) : data)
        if (op === Universal.Opcode.PING) socket.send(JSON.stringify({ op: Universal.Opcode.PONG, body: {} }))
        if (op !== Universal.Opcode.IDENTIFY) return
        if (fieldsOf(body).token !== token) socket.close(4004, 'invalid token')
        else socket.send(JSON.stringify({ op: Universal.Opcode.READY, body: { logins: [holder.satori?.describe()], proxy_urls: [] } }))
      })
    })
    return holder.satori = new Satori({ platform, id, features: given }, server)
  }

  /** Loads the adapter into an app. */
  connect(app: Context): void {
    const fork = loadPlatform(app, this)
    this.dispose = () => void fork.dispose()
  }

  get adapter(): AdapterEntry {
    return { name: '@satorijs/adapter-satori', config: { endpoint: this.server.url, token, retryTimes: 6, retryInterval: 50, retryLazy: 60_000 } }
  }

  get arrived(): readonly Arrived[] {
    return this.ledger.map(({ channelId, content }) => ({ to: `${this.sid}:group:${channelId}`, text: content, isAnswer: false }))
  }

  /** How targets name this login. */
  get sid(): string {
    return `${this.login.platform}:${this.login.id}`
  }

  /** The calls to a method, such as `message.create`, or all calls. */
  calls(method?: string): Call[] {
    return this.server.calls.filter(({ path }) => method === undefined || path === `/v1/${method}`)
  }

  fault(method: string, fault: Omit<Fault, 'path'>): void {
    this.server.fault({ ...fault, path: new RegExp(`^/v1/${method}$`) })
  }

  clear(): void {
    this.server.clear()
    this.ledger.length = 0
    this.show = content => content
  }

  /** A user says something in a channel; the type of a private one is 1. */
  say(content: string, { channel = { id: 'c1', type: 0 }, user = 'u1', id = `said-${++this.ids}` }: Saying = {}): void {
    this.emit('message-created', { channel, user: { id: user }, message: { id, content } })
  }

  /** Reports an event of this type. */
  emit(type: string, event: JsonObject): void {
    const { platform, id } = this.login
    const login = { sn: 1, platform, user: { id } }
    const body = { sn: ++this.sn, type, timestamp: Date.now(), login, ...event }
    for (const socket of this.server.sockets) socket.send(JSON.stringify({ op: Universal.Opcode.EVENT, body }))
  }

  async stop(): Promise<void> {
    this.dispose()
    await this.server.stop()
  }

  private describe(): JsonObject {
    const { platform, id, features } = this.login
    return { sn: 1, platform, user: { id, name: 'Bot' }, status: Universal.Status.ONLINE, adapter: platform, features }
  }

  private handle({ method, path, headers, fields }: Call): Answer {
    const name = path.slice('/v1/'.length)
    if (method !== 'POST') return { status: 405, body: 'Please use POST method to send requests.' }
    if (!this.login.features.includes(name)) return { status: 404, body: 'method not found' }
    if (headers.authorization !== `Bearer ${token}`) return { status: 403, body: 'invalid token' }
    const { 'satori-platform': platform, 'satori-user-id': id } = headers
    if (id !== this.login.id || platform !== this.login.platform) return { status: 403, body: 'login not found' }
    return { body: this.carryOut(name, fields) }
  }

  private carryOut(name: string, fields: JsonObject): unknown {
    const { channel_id: channelId, message_id: messageId, user_id: userId, guild_id: guildId, next, limit } = fields
    switch (name) {
      case 'message.create': {
        const content = String(fields.content)
        const entry = { id: `m${++this.ids}`, channelId: String(channelId), content, parts: read(content), at: Date.now() }
        this.ledger.push(entry)
        return [this.toMessage(entry)]
      }
      case 'message.list': {
        const entries = this.ledger.filter(entry => entry.channelId === channelId)
        return { data: entries.slice(-Number(limit)).map(entry => this.toMessage(entry)) }
      }
      case 'message.delete':
        this.ledger.splice(this.ledger.findIndex(({ id }) => id === messageId), 1)
        return {}
      case 'user.channel.create':
        return { id: `private:${String(userId)}`, type: 1 }
      case 'guild.list':
        return next === undefined ? { data: [{ id: 'g1', name: 'One' }], next: 'p2' } : { data: [{ id: 'g2', name: 'Two' }] }
      case 'channel.list':
        return { data: [{ id: `${String(guildId)}-text`, type: 0, name: 'talk' }, { id: `${String(guildId)}-voice`, type: 3, name: 'voice' }] }
      case 'friend.list':
        return { data: [{ user: { id: 'u1', name: 'Ann' }, nick: 'Annie' }, { user: { id: 'u2', name: 'Bob' } }] }
      default:
        return {}
    }
  }

  private toMessage({ id, content, at }: Entry): JsonObject {
    return { id, content: this.show(content), user: { id: this.login.id, name: 'Bot' }, created_at: at }
  }

  /** Reports an entry as the account's own message. */
  report({ id, channelId, content }: Entry): void {
    this.say(content, { channel: { id: channelId, type: 0 }, user: this.login.id, id })
  }
}

interface Saying {
  channel?: { id: string, type: number }
  user?: string
  id?: string
}

/** Texts that stand next to one another are one, and a break is one of a line. */
function read(content: string): Part[] {
  const parts: Part[] = []
  for (const element of h.parse(content)) {
    const { type } = element
    const text = type === 'text' ? element.toString(true) : type === 'br' ? '\n' : undefined
    const last = parts.at(-1)
    if (text === undefined) parts.push([type, element.toString()])
    else if (last?.[0] === 'text') last[1] += text
    else parts.push(['text', text])
  }
  return parts
}
