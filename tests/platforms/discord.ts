import type { Context, ForkScope } from 'koishi'
import type { Config } from '../../src'
import { fieldsOf, type JsonObject } from '../../src/lib/shape'
import type { AdapterEntry } from '../support/adapter'
import type { TestRelay } from '../support/relay'
import { loadPlatform, relayWith, type Arrived, type Platform } from './platform'
import { PlatformServer, type Answer, type Call, type SentFile } from './server'

/*
 * Discord as far as the relay uses it. Sources: https://docs.discord.com/developers/resources/message, /resources/user, /resources/guild,
 * /topics/rate-limits, /topics/opcodes-and-status-codes, /events/gateway and /reference.
 */

export const botId = '198622483471925248'
/** As the example of the documentation: it begins with the ID in base64. */
export const token = 'MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs'
export const guild = '197038439483310086'
export const channel = '290926798999357250'
export const thread = '1099988877766655544'
export const user = '53908099506183680'
/** The channel of the private chat with the user. */
export const direct = '319674150115610528'

/** The path of messages. */
export const messages = /^\/channels\/\d+\/messages$/

/** A message that is in a channel. */
export interface Shown {
  id: string
  channel: string
  /** As Discord keeps it. */
  content: string
  /** The users whom it notifies, and `everyone`. */
  notified: string[]
  replyTo: string | undefined
  files: SentFile[]
}

export function errorOf(status: number, code: number, message: string): Answer {
  return { status, body: { message, code } }
}

/** An answer that too many calls came; it has the headers of the documentation's examples. */
export function limited(seconds: number, scope: 'user' | 'global' | 'shared' = 'user'): Answer {
  const headers = { 'retry-after': String(Math.ceil(seconds)), 'x-ratelimit-scope': scope, ...scope === 'global' && { 'x-ratelimit-global': 'true' } }
  const body = { message: 'You are being rate limited.', retry_after: seconds, global: scope === 'global' }
  return { status: 429, headers, body }
}

/** The HTTP API and the gateway. */
export class Discord implements Platform {
  /** All messages, the oldest first. */
  readonly shown: Shown[] = []
  /** Whether bots can log in. */
  isOpen = true
  /** Whether the bot may read the history. */
  showsHistory = true
  readonly recalled: string[] = []
  private readonly nonces = new Map<unknown, Shown>()
  private count = 0
  private fork: ForkScope | undefined

  private constructor(readonly server: PlatformServer) {}

  static async start(): Promise<Discord> {
    const holder: { discord?: Discord } = {}
    const server = await PlatformServer.start(call => holder.discord?.handle(call) ?? {}, socket => {
      // Hello, Identify, Ready: https://docs.discord.com/developers/events/gateway#connection-lifecycle
      socket.send(JSON.stringify({ op: 10, d: { heartbeat_interval: 41_250 }, s: null, t: null }))
      socket.on('message', data => {
        const { op } = fieldsOf(JSON.parse(Buffer.isBuffer(data) ? data.toString() : '{}'))
        if (op === 1) socket.send(JSON.stringify({ op: 11 }))
        if (op === 2) {
          holder.discord?.tell('READY', {
            v: 10, user: self, guilds: [{ id: guild, unavailable: true }], session_id: 'one', resume_gateway_url: server.url.replace('http', 'ws'),
            application: { id: botId, flags: 0 },
          })
        }
      })
    })
    return holder.discord = new Discord(server)
  }

  get adapter(): AdapterEntry {
    const retry = { retryTimes: 100, retryInterval: 50, retryLazy: 50 }
    return { name: '@satorijs/adapter-discord', config: { type: 'bot', token, slash: false, endpoint: this.server.url, ...retry } }
  }

  /** A relay with a bot of this platform. */
  relay(config: Config): Promise<TestRelay> {
    return relayWith([`discord:${botId}`], app => this.load(app), config)
  }

  /** Loads the adapter, in the place of the one that is loaded. */
  load(app: Context): void {
    this.fork?.dispose()
    this.fork = loadPlatform(app, this)
  }

  get arrived(): readonly Arrived[] {
    return this.shown.map(({ channel, content, replyTo }) => {
      const to = `discord:${channel === direct ? `private:${user}` : `group:${channel}`}`
      return { to, text: content, isAnswer: replyTo !== undefined }
    })
  }

  clear(): void {
    this.server.clear()
    this.shown.length = 0
    this.nonces.clear()
    this.showsHistory = true
  }

  /** The calls that would make messages. */
  posts(): Call[] {
    return this.server.callsTo(messages).filter(({ method }) => method === 'POST')
  }

  /** Another program writes so many messages through the same bot. */
  fill(place: string, count: number): void {
    for (let index = 0; index < count; index++) {
      this.shown.push({ id: this.nextId(), channel: place, content: `${index}`, notified: [], files: [], replyTo: undefined })
    }
  }

  /** An event for the bot. */
  tell(type: string, data: object): void {
    for (const socket of this.server.sockets) socket.send(JSON.stringify({ op: 0, t: type, s: ++this.count, d: data }))
  }

  /** A member, or a webhook, writes something. */
  say(content: string, more: JsonObject = {}): void {
    const author = { id: user, username: 'mason', discriminator: '0', global_name: 'Mason', avatar: null }
    this.tell('MESSAGE_CREATE', { ...messageOf({ id: this.nextId(), channel, content }), guild_id: guild, author, member: { roles: [] }, ...more })
  }

  private handle({ method, path, query, headers, fields, files }: Call): Answer {
    if (headers.authorization !== `Bot ${token}`) return { status: 401, body: { message: '401: Unauthorized', code: 0 } }
    if (path === '/gateway/bot') return this.isOpen ? { body: { url: this.server.url.replace('http', 'ws'), shards: 1 } } : { status: 503, body: 'Unavailable' }
    if (path === '/users/@me/channels') {
      return fields.recipient_id === user ? { body: { id: direct, type: 1, recipients: [{ id: user, username: 'mason' }] } } : invalid('recipient_id', 'Unknown user')
    }
    if (path === '/users/@me/guilds') return { body: query.get('after') === '0' ? [{ id: guild, name: 'Team', owner: true }] : [] }
    if (path === `/guilds/${guild}/channels`) {
      return { body: [{ id: '1', type: 4, name: 'Text Channels' }, { id: channel, type: 0, name: 'general' }, { id: '2', type: 2, name: 'Voice' }] }
    }
    if (path === `/guilds/${guild}/threads/active`) return { body: { threads: [{ id: thread, type: 11, name: 'incident', parent_id: channel }], members: [] } }
    const [, place = '', recalled] = /^\/channels\/(\d+)\/messages(?:\/(\d+))?$/.exec(path) ?? []
    if (![channel, thread, direct].includes(place)) return errorOf(404, 10003, 'Unknown Channel')
    if (method === 'DELETE') {
      this.recalled.push(`${place} ${recalled ?? ''}`)
      return { status: 204, body: '' }
    }
    if (method === 'PATCH') {
      const message = this.shown.find(({ id, channel: where }) => id === recalled && where === place)
      if (!message) return errorOf(404, 10008, 'Unknown Message')
      Object.assign(message, { content: fields.content, notified: notifiedBy(String(fields.content), fieldsOf(fields.allowed_mentions)) })
      return { body: messageOf(message) }
    }
    const known = this.shown.find(({ id }) => id === recalled)
    if (method === 'GET' && known) return { body: messageOf(known) }
    if (method === 'GET') return this.history(place, query)
    return this.create(place, files.size > 0 ? fieldsOf(JSON.parse(String(fields.payload_json))) : fields, files)
  }

  private history(place: string, query: URLSearchParams): Answer {
    const before = BigInt(query.get('before') ?? 2n ** 64n)
    const found = this.shown.filter(message => message.channel === place && BigInt(message.id) < before)
    return { body: this.showsHistory ? found.reverse().slice(0, Number(query.get('limit') ?? 50)).map(messageOf) : [] }
  }

  private create(place: string, fields: JsonObject, files: Call['files']): Answer {
    const { content, nonce, enforce_nonce: isEnforced, allowed_mentions: allowed, message_reference: reference } = fields
    const text = typeof content === 'string' ? content.trim() : ''
    if (text.length > 2000) return invalid('content', 'Must be 2000 or fewer in length.')
    if (text === '' && files.size === 0) return errorOf(400, 50006, 'Cannot send an empty message')
    const known = isEnforced === true ? this.nonces.get(nonce) : undefined
    if (known) return { body: messageOf(known) }
    const { message_id: replyTo } = fieldsOf(reference)
    const message: Shown = {
      id: this.nextId(), channel: place, content: text, notified: notifiedBy(text, fieldsOf(allowed)), files: [...files.values()],
      replyTo: typeof replyTo === 'string' ? replyTo : undefined,
    }
    this.nonces.set(nonce, message)
    this.shown.push(message)
    return { body: { ...messageOf(message), nonce } }
  }

  private nextId(): string {
    return String((BigInt(Date.now()) - 1_420_070_400_000n << 22n) + BigInt(++this.count % 4096))
  }
}

const self = { id: botId, username: 'relay', discriminator: '0', global_name: null, avatar: null, bot: true }

/** Discord keeps of the name of a file only plain letters. */
function messageOf({ id, channel, content, files = [] }: Pick<Shown, 'id' | 'channel' | 'content'> & Partial<Shown>): JsonObject {
  const attachments = files.map(({ name, data, type }, index) => ({
    id: String(index), filename: name.replace(/[^\w.-]/g, '_'), size: data.length, content_type: type,
  }))
  return {
    id, channel_id: channel, author: self, content, timestamp: new Date().toISOString(), edited_timestamp: null, tts: false, type: 0,
    mention_everyone: false, mentions: [], mention_roles: [], attachments, embeds: [], pinned: false,
  }
}

/** Nothing but what `allowed_mentions` names notifies anybody, whether it is escaped or not. */
function notifiedBy(text: string, { parse, users }: JsonObject): string[] {
  const isParsed = (type: string): boolean => !Array.isArray(parse) || parse.includes(type)
  const named = [...text.matchAll(/<@!?(\d+)>/g)].map(([, id = '']) => id).filter(id => isParsed('users') || (Array.isArray(users) && users.includes(id)))
  const roles = isParsed('roles') ? [...text.matchAll(/<@&(\d+)>/g)].map(([, id = '']) => `role ${id}`) : []
  return [...named, ...roles, ...isParsed('everyone') && /@(?:everyone|here)/.test(text) ? ['everyone'] : []]
}

/** A call whose fields are wrong. */
export function invalid(field: string, message: string): Answer {
  return { status: 400, body: { code: 50035, errors: { [field]: { _errors: [{ code: 'BASE_TYPE_BAD', message }] } }, message: 'Invalid Form Body' } }
}

/** What the client makes something else of than text, in the order in which it looks, each at the place where it stands. */
const markup = [
  /```.*?[^\n].*?```/sy, /(`+).+?(?<!`)\1(?!`)/sy,
  /\*\*(?:\\.|[^\\])+?\*\*(?!\*)/sy, /__(?:\\.|[^\\])+?__(?!_)/sy,
  /\*(?!\s)(?:\\.|\*\*|[^*\\])+?(?<!\s) {0,2}\*(?!\*)/sy, /_(?:\\.|__|[^_\\])+?_(?![a-zA-Z0-9_])/sy,
  /~~.+?~~(?!_)/sy, /\|\|.+?\|\|/sy,
  /<t:-?\d+(?::[tTdDfFR])?>/y, /<a?:\w+:\d+>/y, /:[\w+-]+:/y, /<@[!&]?\d+>/y, /<#\d+>/y, /<id:\w+>/y, /<\/[^>]+:\d+>/y,
  /@(?:everyone|here)/y,
  /\[(?:\[[^\]]*\]|[^[\]])*[^[]*\]\(\s*<?(?:\([^)]*\)|[^\s\\]|\\[^\n])*?>?(?:\s+['"].*?['"])?\s*\)/sy,
]
const atLineStart = [/-# +(?!-#)[^\n]+/y, / *#{1,3}\s+(?!#)[^\n]*/y, / *>(?:>>)? [^\n]*/y, / *(?:[*-]|\d+\.) +[^\n]+/y]
const bare = /(?:https?|steam):\/\/[^\s<]+[^<.,:;"'\]\s]/y
const bracketed = /<([^: >]+:\/[^ >]+)>/y

/**
 * What members see of a message, with everything that is not text between `⟦` and `⟧`, and with links as they are. Written after
 * https://github.com/LyricLy/parse-discord, which imitates the clients.
 */
export function seen(content: string): string {
  let text = ''
  for (let at = 0; at < content.length;) {
    const find = (pattern: RegExp): RegExpExecArray | null => {
      pattern.lastIndex = at
      return pattern.exec(content)
    }
    const isStart = at === 0 || content[at - 1] === '\n'
    const escaped = find(/\\([^A-Za-z0-9\s])/sy)
    const [live] = [...isStart ? atLineStart : [], ...markup].map(find).find(found => found) ?? []
    const link = find(bare) ?? find(bracketed)
    const part = escaped ?? link ?? (live === undefined ? [content.charAt(at)] : [live, `⟦${live}⟧`])
    text += part[1] ?? part[0]
    at += part[0].length
  }
  return text
}
