import type { Context, Logger, Session } from 'koishi'
import { LRUCache } from 'lru-cache'
import { setTimeout } from 'node:timers/promises'
import { v7 as uuid } from 'uuid'
import { RelayError } from '../errors'
import { parseEndpoint, type Endpoint } from '../lib/endpoint'
import type { InFlight } from '../lib/async'
import { unwrap } from '../lib/koishi'
import { Limiter, OverloadError } from './limiter'
import { describePlace, printable } from '../lib/log'
import type { JsonObject } from '../lib/shape'
import type { BotSelector, Reply, Target } from '../message/model'
import { parseReply } from '../message/parse'
import { resultOf } from '../relay/delivery'
import type { Relay } from '../relay/relay'
import { CallbackError, type CommandBody, type CommandPost, postCommand } from './callback'
import { type Command, helpFor, helpName, mayUse } from './list'
import { type CommandMatch, type CommandPattern, matchCommand, matchNamed } from './matcher'

export { parseCommands } from './list'

/** How many posts to the callback may be open at once: each takes a connection. */
const maxCallbacks = 64
/** How many further commands may wait for one. */
const maxWaiting = 256
/** The wait before a callback that could not answer is asked a second time, in milliseconds. */
const retryPause = 1000
/** For how long, in milliseconds, and for how many messages it is known which account heard one first. */
const firstHearers = { ttl: 10_000, max: 1_000 }
/** The least time between two lines about dropped commands, in milliseconds. */
const reportInterval = 60_000

/** Which messages are commands, and where they are posted. */
export interface CommandSettings extends CommandPattern {
  /** Where a command is posted that is in no list. */
  callbackUrl: string
  /** The only commands that there are, by their names. Absent: every name of the right length is one. */
  commands?: ReadonlyMap<string, Command>
  /** What the posts are signed with, as `isSigningSecret` has it; an empty text: they are not signed. */
  secret: string
  /** Whether a callback that answers 503, or not at all, is asked a second time. */
  retry: boolean
  /** For each exchange with the callback, in milliseconds. */
  timeout: number
}

/** Where a command came from. */
export interface Source {
  /** The bot that received it. Replies leave through it. */
  bot: BotSelector
  /** Account of the sender. */
  userId: string
  /** Where the reply goes unless it says otherwise. */
  target: Target
  messageId: string
}

/** What the commands need of the rest of the plugin. */
export interface CommandOptions {
  relay: Pick<Relay, 'submit' | 'active'>
  /**
   * Reads a message: its text, without the name of a bot that some platforms have behind that of a command; the same as typed; and its
   * source, which is `undefined` where no reply is wanted or possible.
   */
  readIncoming: (session: Session) => { readonly text: string, readonly raw: string, readonly source: Source | undefined }
  /** Counts the replies that are being sent. */
  inFlight: InFlight
  logger: Logger
}

/**
 * Posts each message that is a command to the callback, and sends what it answers.
 *
 * A message goes on to the other middlewares when it is no command, and when its callback gives nothing that could be sent. It
 * ends here once there is a reply, even if that cannot be delivered. Waiting holds up this one message only, because Koishi runs
 * the middlewares of each message on their own. Of a flood, what cannot be asked in time is dropped: it goes on to the other
 * middlewares, and the log says how many there were. When the context is disposed, exchanges under way end and nothing more is sent.
 */
export function listenForCommands(ctx: Context, settings: CommandSettings, options: CommandOptions): void {
  const { relay, readIncoming, inFlight, logger } = options
  const { prefix, length, callbackUrl, commands, secret, retry, timeout } = settings
  const common = parseEndpoint(callbackUrl)
  if (!common && !commands) {
    logger.error('commands are off: commandCallbackUrl is not an http(s) address')
    return
  }

  const lifetime = new AbortController()
  const { signal } = lifetime
  let dropped = 0
  const reportDropped = (count: number): void => {
    logger.warn('%s', `${count} ${count === 1 ? 'command' : 'commands'} dropped: the callback answers more slowly than commands arrive`)
    dropped = 0
  }
  const reportSometimes = ctx.throttle(reportDropped, reportInterval)
  ctx.on('dispose', () => {
    lifetime.abort()
    if (dropped > 0) reportDropped(dropped)
  })
  // After the time that an answer may take, the member no longer expects one.
  const callbacks = new Limiter({ concurrency: maxCallbacks, capacity: maxWaiting, patience: timeout })

  /** What a member gets for a command: a post to its callback, or a text. `undefined`: nothing, as it is none or not for this member. */
  const find = ({ command: name }: CommandMatch, source: Source): Endpoint | string | undefined => {
    const command = commands?.get(name)
    if (!commands) return common
    if (!command) return name === helpName ? helpFor(commands, prefix, source) : undefined
    if (mayUse(command, source)) return command.endpoint
    startEntry(logger, uuid(), name, source.target)('info', 'ignored: this member may not use it there')
  }

  /** Posts a command, a second time where the settings allow it. In between it keeps its place among the open posts. */
  const post = async (id: string, endpoint: Endpoint, body: CommandBody): Promise<JsonObject | undefined> => {
    const options: CommandPost = { timeout, stop: signal, ...(secret || retry) && { identity: { id, secret } } }
    try {
      return await postCommand(endpoint, body, options)
    } catch (error) {
      if (!retry || signal.aborted || !(error instanceof CallbackError) || !error.isTemporary) throw error
      logger.warn('%s', `${id} the callback did not answer and is asked once more: ${error.message}`)
    }
    await setTimeout(retryPause, undefined, { signal })
    return postCommand(endpoint, body, options)
  }

  const ask = async (id: string, endpoint: Endpoint, body: CommandBody): Promise<Reply | undefined> => {
    const response = await post(id, endpoint, body)
    if (response && !('reply' in response || 'messages' in response)) throw new CallbackError('the answer has neither reply nor messages')
    const reply = response && parseReply(response)
    const [first] = reply?.items ?? []
    if (first instanceof RelayError && reply?.items.every(item => item instanceof RelayError)) {
      throw new CallbackError(`every item of messages is wrong, the first: ${first.message}`)
    }
    return reply
  }

  /** Sends the items of a reply that can be sent; the log has a line for each of the others. @throws RelayError where none was sent */
  const deliver = async (id: string, { bot, target }: Source, reply: Reply): Promise<void> => {
    const warn = (text: string) => logger.warn('%s', `${id} an item of the reply ${text}`)
    for (const item of reply.items) if (item instanceof RelayError) warn(`is left out: ${item.message}`)
    const items = reply.items.filter(item => !(item instanceof RelayError))
    const leave = inFlight.enter()
    try {
      const { delivery } = await relay.submit({ id, door: 'commands', request: { mode: 'batch', target: reply.target ?? target, bot, items } })
      const { results } = delivery
      const errors = results.flatMap(result => result?.success === false ? [result.error] : [])
      const worst = resultOf(delivery)
      if (worst?.success === false && errors.length === results.length) throw worst.error
      for (const { status, logText } of errors) warn(`failed: ${status} ${logText}`)
    } finally {
      leave()
    }
  }

  /** Handles one command; never throws. Tells whether there was a reply, so that the message ends here. */
  const handle = async (source: Source, answer: Endpoint | string, body: CommandBody): Promise<boolean> => {
    // The relay that works the database posts this command; a standby must not do so as well.
    if (await relay.active().then(() => false, () => true)) return false
    const id = uuid()
    const log = startEntry(logger, id, body.command, source.target)
    let reply: Reply | undefined
    try {
      if (typeof answer === 'string') reply = { items: [{ type: 'text', text: answer }] }
      else {
        reply = await callbacks.run(async () => {
          signal.throwIfAborted()
          return ask(id, answer, body)
        })
      }
      // The context may have been disposed right after the answer came.
      signal.throwIfAborted()
    } catch (error) {
      if (signal.aborted) log('info', 'given up: the relay is stopping')
      else if (error instanceof OverloadError) reportSometimes(++dropped)
      else log('warn', `no reply: ${reasonOf(error)}`)
      return false
    }
    if (!reply) {
      log('info', 'no reply')
      return false
    }
    try {
      await deliver(id, source, reply)
      log('info', 'replied')
    } catch (error) {
      log('warn', `the reply was not delivered: ${reasonOf(error)}`)
      // With a malformed target it is no reply.
      if (error instanceof RelayError && error.code === 'bad-request') return false
    }
    return true
  }

  /** The accounts of this Koishi that heard a message first, by what was said, by whom and where. */
  const hearers = new LRUCache<string, string>(firstHearers)

  /** Whether a message is no member's, or was heard by another account in the same group: two that are there both hear it. */
  const isForAnother = ({ bot: { platform, selfId = '' }, userId, target }: Source, text: string): boolean => {
    if (ctx.bots.some(bot => bot.platform === platform && bot.selfId === userId)) return true
    const said = JSON.stringify([platform, target, userId, text])
    const first = hearers.get(said) ?? selfId
    hearers.set(said, first)
    return first !== selfId
  }

  /** Begins to handle a command; resolves to whether there was a reply. `undefined` for a message that is none. */
  const hear = (session: Session): Promise<boolean> | undefined => {
    const incoming = readIncoming(session)
    const match = commands ? matchNamed(incoming.text, prefix) : matchCommand(incoming.text, { prefix, length })
    if (!match || signal.aborted) return
    const { raw, source } = incoming
    if (!source || isForAnother(source, raw)) return
    const answer = find(match, source)
    if (answer !== undefined) return handle(source, answer, toBody(match, raw, source))
  }

  ctx.middleware((session, next) => {
    const handled = hear(session)
    return handled ? handled.then(ended => ended ? undefined : next()) : next()
  }, true)

  // What a platform itself reports as a command passes no middleware: Koishi's command of that name waits for the reply from here.
  const heard = new WeakMap<object, Promise<boolean>>()
  ctx.on('interaction/command', session => {
    const handled = hear(session)
    if (handled) heard.set(unwrap(session), handled)
  }, { prepend: true })
  ctx.before('command/execute', async ({ session }) => {
    if (session && await heard.get(unwrap(session))) return ''
  })
  const origins = commands ? [...new Set([...commands.values()].map(({ endpoint }) => endpoint.origin))].join(', ') : common?.origin
  const what = commands ? [...commands.keys()].map(name => `"${prefix}${name}"`).join(', ') : `"${prefix}" and ${length} characters`
  logger.info('%s', printable(`listening for commands: ${what}, posted to ${origins ?? ''}`))
}

function toBody({ command, content }: CommandMatch, text: string, { userId, target, messageId }: Source): CommandBody {
  return {
    command,
    content,
    raw_message: text,
    user_id: userId,
    ...target.kind === 'group' && { group_id: target.id },
    message_id: messageId,
  }
}

/**
 * Begins the line of one command in the log: its ID, name, origin, outcome and duration, which counts from here. Neither what a
 * member wrote nor what the callback answered is in it.
 */
function startEntry(logger: Logger, id: string, command: string, { kind, id: target }: Target) {
  const start = performance.now()
  return (level: 'info' | 'warn', outcome: string): void => {
    const origin = `command "${printable(command)}" from ${kind} "${printable(target)}"`
    logger[level]('%s', `${id} ${origin}: ${outcome}, ${Math.round(performance.now() - start)} ms`)
  }
}

/** Why a command had no reply. The texts of foreign errors may hold the message, and are left out. */
function reasonOf(error: unknown): string {
  if (error instanceof RelayError) return `${error.logText} (${error.code})`
  return error instanceof CallbackError ? error.message : describePlace(error)
}
