import type { Context } from 'koishi'
import type { Access } from '../access/access'
import type { MadeKeys } from '../access/made-keys'
import type { Refusals } from '../access/refusals'
import { RelayError } from '../errors'
import type { Sources, Templates } from '../hooks'
import { describePlace, type Log } from '../lib/log'
import { hour } from '../lib/time'
import { writeAddress } from '../message/target'
import type { Relay } from '../relay/relay'
import { languageNamed } from '../texts/language'
import { say as sayIn } from '../texts/text'
import type { Request } from './request'

export interface SubscriptionParts {
  relay: Pick<Relay, 'standsBehind'>
  access: Pick<Access, 'usage'>
  madeKeys: MadeKeys
  refusals: Pick<Refusals, 'last'>
  sources: Sources
  templates: Templates
  /** The address of the plugin, and whether the settings say that others reach it there. */
  address: () => { url: string, isPublic: boolean }
  logger: Log
}

/** How long the chat is told of the first call, and how often the relay looks, in milliseconds. */
const patience = 24 * hour
const interval = 1_000
/** The sources whose senders sign with a secret and take no key in a header or a form of their own. */
const signing: ReadonlySet<string> = new Set(['github', 'gitea'])
const isFilled = (value: string): boolean => /./.test(value)
/** The filters of an address, each with what accepts a value. */
const filters: ReadonlyMap<string, (value: string) => unknown> = new Map<string, (value: string) => unknown>([
  ['events', isFilled], ['branch', isFilled], ['status', isFilled], ['lang', languageNamed],
])

/** A new address whose first call the chat is to hear of. */
interface Expected {
  request: Request
  source: string
  since: number
  hasRefusal: boolean
}

/** Connects sources to the chat of a command: it makes keys and addresses, and tells the chat when they are first called. */
export class Subscriptions {
  /** By the names of their keys. */
  private readonly expected = new Map<string, Expected>()

  constructor(ctx: Context, private readonly parts: SubscriptionParts) {
    ctx.setInterval(() => this.look(), interval)
  }

  /**
   * Makes a key for this chat and a source, and sends address and secret in private to the one who asked. Without that, there is no key.
   *
   * @param words filters such as `events=push`
   * @returns the answer
   */
  async add(request: Request, source = '', words: readonly string[] = []): Promise<string> {
    const { say, session, account, source: { bot: { platform }, target, userId } } = request
    const { relay, madeKeys, sources, templates, logger } = this.parts
    const known = [...new Set([...sources.names(), ...templates.names()])]
    if (!sources.get(source) && !await templates.has(source)) return say(source === '' ? 'sub.usage' : 'sub.unknown', { source, sources: known.join(' ') })
    const query = new URLSearchParams()
    for (const word of words) {
      const [, name = '', value = ''] = /^([^=]*)=(.*)$/s.exec(word) ?? []
      if (!filters.get(name)?.(value) || query.has(name)) return say('sub.filter', { word, source })
      query.set(name, value)
    }
    // The active relay would notice the key only later.
    if (relay.standsBehind !== undefined) throw new RelayError('standby')
    const address = writeAddress({ platform, target })
    const name = this.nameFor(source, target.id)
    const secrets = await madeKeys.create({ name, allow: ['hooks'], sources: [source], targets: [address], ...signing.has(source) && { signs: true } })
    logger.info(sayIn('chat-key-made', { name: JSON.stringify(name), account }))
    try {
      const ids = await session.bot.sendPrivateMessage(userId, this.instructions(request, { source, address, query, ...secrets }))
      // A plugin can suppress a message.
      if (ids.length === 0) throw new RelayError('suppressed')
    } catch (error) {
      await madeKeys.remove(name)
      // The error of an adapter may contain the message, and so the secret.
      logger.warn(sayIn('chat-key-removed', { name: JSON.stringify(name), account, place: describePlace(error) }))
      return say('sub.unsent', { source })
    }
    this.expected.set(name, { request, source, since: Date.now(), hasRefusal: false })
    return say(target.kind === 'private' ? 'sub.ready' : 'sub.told', { source, name })
  }

  /** What to enter where, with the secret. */
  private instructions(
    { say, source: { target } }: Request,
    { source, address, query, key, secret }: { source: string, address: string, query: URLSearchParams, key: string, secret?: string },
  ): string {
    const { url, isPublic } = this.parts.address()
    if (secret === undefined && source !== 'apprise') query.set('key', key)
    const whole = `${url}/hooks/${source}/${encodeURI(address)}${query.size > 0 ? `?${query.toString()}` : ''}`
    // Apprise keeps parameters for itself, and sends user and password as Basic.
    const shown = source === 'apprise' ? whole.replace(/^http(s?):\/\//, (_, secure: string) => `json${secure}://relay:${key}@`) : whole
    return [
      say(target.kind === 'private' ? 'sub.here' : 'sub.for', { source, target: address }),
      ...secret === undefined ? [say('sub.address', { url: shown })] : [say('sub.form', { url: shown, secret })],
      ...isPublic ? [] : [say('sub.local')],
    ].join('\n')
  }

  private nameFor(source: string, id: string): string {
    const base = `${source}-${id.replace(/[^\w-]+/g, '-')}`.slice(0, 56)
    const used = this.parts.access.usage()
    for (let name = base, count = 2; ; name = `${base}-${count++}`) if (!used.has(name)) return name
  }

  /** Tells chats of the first call of their source, also of one that made no message or was refused. */
  private look(): void {
    if (this.expected.size === 0) return
    const [usage, calls] = [this.parts.access.usage(), new Map(this.parts.refusals.last)]
    for (const [name, expected] of this.expected) {
      const { source, since, request: { say } } = expected
      const { accepted, last } = usage.get(name) ?? {}
      const call = calls.get(`hooks/${source}`)
      const isNew = call !== undefined && call.at >= since
      if (last === undefined || since + patience < Date.now()) this.expected.delete(name)
      else if (accepted || (last > 0 && isNew && call.isSkipped && call.at >= last)) {
        this.expected.delete(name)
        this.tell(expected, accepted ? say('sub.connected', { source }) : say('sub.skipped', { source, reason: call?.reason ?? '' }))
      } else if (isNew && !call.isSkipped && !expected.hasRefusal) {
        expected.hasRefusal = true
        this.tell(expected, say('sub.refused', { source, reason: call.reason }))
      }
    }
  }

  private tell({ request: { session, source: { target } } }: Expected, text: string): void {
    session.send(text).catch((error: unknown) => {
      this.parts.logger.warn(sayIn('first-call-untold', { chat: target.id, place: describePlace(error) }))
    })
  }
}
