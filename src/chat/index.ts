import type { Context, Session } from 'koishi'
import { LRUCache } from 'lru-cache'
import type { MadeTargets } from '../access/made-targets'
import { RelayError } from '../errors'
import { describePlace, type Log } from '../lib/log'
import enUS from '../locales/chat.en-US.yml'
import zhCN from '../locales/chat.zh-CN.yml'
import { Hearings, identitiesOf } from '../message/hearings'
import { writeTarget } from '../message/target'
import type { Incoming } from '../platform/incoming'
import { breakTags } from '../platform/session'
import type { Relay } from '../relay/relay'
import { languageOf, type Language } from '../texts/language'
import { say as sayIn, Text } from '../texts/text'
import { last, status, targets, test, why, type Views } from './answers'
import type { Request } from './request'
import { Subscriptions, type SubscriptionParts } from './subscriptions'

/** How many commands of an account are answered within a time in milliseconds: nobody types more, and the answers would flood the chat. */
const most = 20
const countCache = { ttl: 60_000, max: 1_000, noUpdateTTL: true }

export interface ChatParts extends Views, SubscriptionParts {
  relay: Relay
  names: MadeTargets
  readIncoming: (session: Session) => Incoming
  /** The language of answers if neither the chat nor the sender has one in Koishi. */
  language: Language
  logger: Log
}

/**
 * Adds the commands `relay.…` to the bot until the context is disposed. For everybody but the operators they do not exist: Koishi's
 * authority cannot decide this, because without a database it lets everybody through.
 */
export function startChatConsole(
  ctx: Context, { chatCommands, chatOperators }: { chatCommands: boolean, chatOperators: readonly string[] }, parts: ChatParts,
): void {
  if (!chatCommands) return
  const { relay, readIncoming, language: fallback, logger } = parts
  if (chatOperators.length === 0) logger.warn(sayIn('no-chat-operators'))
  for (const [locale, texts] of [['zh-CN', zhCN], ['en-US', enUS]] as const) ctx.effect(() => ctx.i18n.define(locale, texts))
  const operators = new Set(chatOperators)
  const hearings = new Hearings(() => ctx.bots)
  const counts = new LRUCache<string, number>(countCache)
  const subscriptions = new Subscriptions(ctx, parts)
  const own = ctx.intersect(({ platform, userId }) => operators.has(`${platform}:${userId}`))

  const isFlooded = (account: string): boolean => {
    const count = (counts.get(account) ?? 0) + 1
    counts.set(account, count)
    return count > most
  }

  /** Reads a command; `undefined` if it is not to be answered. */
  const read = (session: Session, locales: readonly string[]): Request | undefined => {
    const { source, text } = readIncoming(session)
    if (!source || hearings.isOwnOrDuplicate(source, text, identitiesOf(source))) return
    const account = `${session.platform}:${source.userId}`
    if (isFlooded(account)) return
    const wanted = [...locales, fallback]
    const language = languageOf(ctx.i18n.fallback(wanted))
    return {
      session, source, account, language,
      say: (path, values = {}) => {
        const write = (value: string | number | Text): string => breakTags(value instanceof Text ? value.in(language) : String(value))
        const safe = Object.entries(values).map(([name, value]) => [name, write(value)] as const)
        return ctx.i18n.render(wanted, [`commands.relay.messages.${path}`], Object.fromEntries(safe)).join('')
      },
    }
  }

  const add = (
    declaration: string, run: (request: Request, words: string[], options: Readonly<Record<string, unknown>>) => string | Promise<string>,
  ): void => {
    // A quoted message would become a word of the command.
    own.command(declaration, { captureQuote: false }).userFields(['locales']).channelFields(['locales'])
      .action(async ({ session, options = {} }, ...words) => {
        const locales = [session?.locales, session?.channel?.locales, session?.user?.locales].flatMap(each => each ?? [])
        const request = session && read(session, locales)
        if (!request) return ''
        const { source: { target }, account, say } = request
        const [name = ''] = declaration.split(' ')
        try {
          // Right after the start, keys and names of targets are not read yet.
          await relay.active().catch(() => undefined)
          const answer = await run(request, words.map(String), options)
          logger.info(sayIn('chat-command-answered', { name, account, chat: writeTarget(target) }))
          return answer
        } catch (thrown) {
          const error = RelayError.from(thrown)
          const cause = error.code === 'internal' ? describePlace(error.cause) : error.logText
          logger.warn(sayIn('chat-command-failed', { name, account, chat: writeTarget(target), cause, code: error.code }))
          return say('failed', { reason: error.said })
        }
      })
  }

  add('relay.status', request => status(request, parts))
  add('relay.targets', request => targets(request, parts))
  add('relay.test [target]', (request, [target]) => test(request, target, parts))
  add('relay.last [count]', (request, [count]) => last(request, count, parts))
  add('relay.why [id]', (request, [id]) => why(request, id, parts))
  add('relay.sub [source] [...filters]', (request, [source, ...filters], options) => {
    const named = Object.entries(options).map(([name, value]) => `${name}=${String(value)}`)
    return subscriptions.add(request, source, [...filters, ...named])
  })
}
