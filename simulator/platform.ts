import { Connections, type ConnectionListener } from './connections'
import { botOffline, emojiLike, groupBan, messageBody, type Voice } from './events'
import { Media, type Opened } from './media'
import { Messages, type StoredMessage } from './messages'
import type { Settings } from './options'
import { profiles, type Profile } from './profiles'
import { Ring } from './ring'
import { isMedia, textOf } from './segments'
import { Switches, type Switch } from './switches'
import { Timers } from './timers'
import type { Call, LedgerEntry, Reacting, Refusal, Saying, Segment, Target } from './types'
import { Waiters } from './waiters'
import { World } from './world'

// Calls and ledger entries keep their content, base64 included. This limits the size of each of the two lists, in bytes.
const weightBudget = 128 * 1024 * 1024

/** A message or file for a chat. `weight` is its approximate size in memory, in bytes. */
export interface Delivery {
  target: Target
  kind: LedgerEntry['kind']
  action: string
  segments: Segment[]
  /** The media of the segments in their order, or the one file. */
  media: Opened[]
  weight: number
  /** Whether risk control hides the message from everybody. */
  isSwallowed: boolean
}

/** Notified of new and recalled messages, reactions, refused sends, connections of bots and changed switches. */
export interface Watcher {
  onMessage(message: StoredMessage): void
  onReaction(message: StoredMessage): void
  onRecall(message: StoredMessage): void
  onRefusal(refusal: Refusal): void
  onConnection(): void
  onSwitches(): void
}

/** The state of the platform, and its reaction to messages. It knows nothing of HTTP or faults. */
export class Platform {
  readonly profile: Profile
  readonly world: World
  readonly messages: Messages
  readonly ledger: Ring<LedgerEntry>
  readonly calls: Ring<Call>
  readonly media: Media
  readonly connections: Connections
  readonly waiters: Waiters
  readonly timers = new Timers()
  readonly switches: Switches
  readonly watchers = new Set<Watcher>()
  /** The last refused send. */
  refusal: Refusal | null = null
  /** The address of the HTTP server, `http://127.0.0.1:PORT`. */
  origin = ''
  private readonly voice: Voice
  private deliveries = 0

  constructor(readonly settings: Settings, onFrame: ConnectionListener['onFrame']) {
    this.profile = profiles[settings.profile]
    this.world = new World(settings)
    this.messages = new Messages(settings.keep)
    this.ledger = new Ring(settings.keep, weightBudget)
    this.calls = new Ring(settings.keep, weightBudget)
    this.media = new Media(this.profile, settings.sharedDisk, settings.keep)
    this.voice = { selfId: settings.selfId, format: settings.messageFormat, tells: this.profile.tells }
    this.waiters = new Waiters(() => this.describe())
    this.switches = new Switches(settings.clock, this.timers, (turned, on, seconds) => {
      this.switched(turned, on, seconds)
    })
    if (settings.anyTarget) this.switches.turn({ name: 'anyTarget', target: null }, true)
    this.connections = new Connections({
      onFrame,
      onChange: () => {
        for (const watcher of this.watchers) watcher.onConnection()
        this.waiters.changed()
      },
    })
  }

  /** Whether the account is online according to heartbeats and `get_status`. Some implementations always say so. */
  get isOnline(): boolean {
    return !this.profile.tells.has('status') || !this.isLoggedOut
  }

  record(call: Call, weight: number): void {
    this.calls.push(call, weight)
    this.waiters.changed()
  }

  /** Adds a message or file to a chat and, unless it is swallowed, to the ledger. Returns the message. */
  deliver({ target, kind, action, segments, media, weight, isSwallowed }: Delivery): StoredMessage {
    const time = this.settings.clock()
    const isFile = kind === 'file'
    const id = this.messages.freshId()
    const shown = media.length === 0 ? segments : isFile ? media.map(medium => this.showFile(medium)) : this.show(segments, media)
    const types = isFile ? ['file' as const] : segments.filter(isMedia).map(segment => segment.type)
    if (!isSwallowed) this.ledger.push({
      seq: ++this.deliveries,
      time,
      target,
      kind,
      messageId: isFile ? null : id,
      action,
      text: textOf(segments),
      segments,
      media: media.map(({ name, size, sha256, source }, index) => ({ type: types[index] ?? 'file', name, size, sha256, source })),
    }, weight)
    const sender = { ...this.world.self, self: true }
    const message = this.messages.add({ id, isFile, isSwallowed, time, target, sender, segments: shown })
    if (this.settings.reportSelf && !isSwallowed) this.connections.broadcast(this.body(message))
    this.tell(message)
    return message
  }

  /** Posts a message of a person. The bot receives it, unless its account is logged out. Returns the message ID. */
  say({ group, user, text, segments, messageId, subType, selfMessage = false, replyTo, raw }: Saying): number {
    const said: Segment[] = replyTo === undefined ? [] : [{ type: 'reply', data: { id: String(replyTo) } }]
    if (segments !== undefined) said.push(...segments)
    if (text !== undefined) said.push({ type: 'text', data: { text } })
    const speaker = selfMessage ? this.world.self : group === undefined ? this.world.person(user) : this.world.ensureMember(group, user)
    const message = this.messages.add({
      id: messageId ?? this.messages.freshId(),
      isFile: false,
      isSwallowed: false,
      time: this.settings.clock(),
      target: group === undefined ? { type: 'private', id: user } : { type: 'group', id: group },
      sender: { ...speaker, self: selfMessage },
      segments: said,
    })
    const event = this.body(message)
    if (!this.isLoggedOut) this.connections.broadcast({ ...event, ...(subType === undefined ? {} : { sub_type: subType }), ...raw })
    this.tell(message)
    return message.id
  }

  /**
   * Lets a member react to a message in a group. The bot hears of it if the implementation tells, and unless its account is logged out.
   * @throws TypeError without such a message
   */
  react(reacting: Reacting): void {
    const { user, messageId, emoji, isAdded = true, raw } = reacting
    const message = this.messages.find(messageId)
    if (message?.target.type !== 'group') throw new TypeError(`no group has a message ${messageId}`)
    const users = new Set(message.reactions.get(emoji))
    if (isAdded) users.add(user)
    else users.delete(user)
    const reactions = new Map(message.reactions).set(emoji, users)
    if (users.size === 0) reactions.delete(emoji)
    message.reactions = reactions
    const { selfId, clock } = this.settings
    if (this.profile.tells.has('reaction') && !this.isLoggedOut) {
      this.connections.broadcast({ ...emojiLike(selfId, clock(), reacting, message.target.id), ...raw })
    }
    for (const watcher of this.watchers) watcher.onReaction(message)
  }

  /** Records a refused send. */
  refuse(refusal: Refusal): void {
    this.refusal = refusal
    for (const watcher of this.watchers) watcher.onRefusal(refusal)
  }

  /** Recalls a message. */
  recall(message: StoredMessage): void {
    this.messages.remove(message)
    for (const watcher of this.watchers) watcher.onRecall(message)
  }

  body(message: StoredMessage): Record<string, unknown> {
    return messageBody(message, this.voice)
  }

  async close(): Promise<void> {
    this.waiters.close()
    await this.media.close()
  }

  private get isLoggedOut(): boolean {
    return this.switches.isOn('loggedOut', null)
  }

  private switched({ name, target }: Switch, on: boolean, seconds: number | null): void {
    const { selfId, clock } = this.settings
    if (name === 'offline' && on) this.connections.dropAll()
    if (name === 'loggedOut' && on && this.profile.tells.has('kick')) this.connections.broadcast(botOffline(selfId, clock()))
    if ((name === 'muted' || name === 'allMuted') && target !== null && seconds !== null) {
      const [operator = selfId] = [...this.world.ensureGroup(target.id).members.keys()].filter(id => id !== selfId)
      const ban = { group: target.id, user: name === 'muted' ? selfId : '0', operator, duration: name === 'muted' ? seconds : -1 }
      this.connections.broadcast(groupBan(selfId, clock(), on ? ban : { ...ban, duration: 0 }))
    }
    for (const watcher of this.watchers) watcher.onSwitches()
    this.waiters.changed()
  }

  private tell(message: StoredMessage): void {
    for (const watcher of this.watchers) watcher.onMessage(message)
    this.waiters.changed()
  }

  private show(segments: readonly Segment[], media: readonly Opened[]): Segment[] {
    let next = 0
    return segments.map(segment => {
      const medium = isMedia(segment) ? media[next++] : undefined
      if (medium === undefined) return segment
      const { name, size } = medium
      const data = { file: name, url: this.urlOf(medium), ...(size === null ? {} : { file_size: String(size) }) }
      return { type: segment.type, data: segment.type === 'file' ? { ...data, name } : data }
    })
  }

  private showFile(medium: Opened): Segment {
    const { name, size, sha256 } = medium
    const fileId = `/${(sha256 ?? name).slice(0, 32)}`
    return { type: 'file', data: { file: name, name, file_id: fileId, file_size: String(size ?? 0), url: this.urlOf(medium) } }
  }

  private urlOf(medium: Opened): string {
    const place = this.media.keep(medium)
    return typeof place === 'string' ? place : `${this.origin}/simulator/media/${place}`
  }

  private describe(): string {
    const calls = this.calls.items.slice(-5).map(call => call.action)
    const ledger = this.ledger.items.slice(-5).map(({ target, text, media }) => ({
      to: `${target.type} ${target.id}`,
      text: text.slice(0, 80),
      media: media.map(({ name }) => name),
    }))
    return `connections: ${this.connections.size}; calls: ${this.calls.items.length}, last ${JSON.stringify(calls)}; `
      + `ledger: ${this.ledger.items.length}, last ${JSON.stringify(ledger)}`
  }
}
