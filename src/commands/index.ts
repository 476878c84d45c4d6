import type { Context, Session } from 'koishi'
import { setTimeout } from 'node:timers/promises'
import { v7 as uuid } from 'uuid'
import { RelayError } from '../errors'
import { httpOf, parseEndpoint, type Endpoint } from '../lib/endpoint'
import type { InFlight } from '../lib/async'
import { unwrap } from '../lib/koishi'
import { Limiter, OverloadError } from './limiter'
import { describePlace, type Log, type Warn } from '../lib/log'
import type { JsonObject } from '../lib/shape'
import { Hearings, identitiesOf } from '../message/hearings'
import type { BotSelector, Reply, Target } from '../message/model'
import { foundInstead, parseReply, replyFields } from '../message/parse'
import { writeTarget } from '../message/target'
import { resultOf } from '../relay/delivery/delivery'
import type { Relay } from '../relay/relay'
import { CallbackError, type CommandBody, type CommandPost, postCommand } from './callback'
import { type Command, helpFor, helpName, mayUse, parseCommands } from './list'
import { type CommandMatch, type CommandPattern, matchCommand, matchNamed } from './matcher'
import { say, words, type Text } from '../texts/text'

/** The most concurrent posts to callbacks. Each uses a connection. */
const maxCallbacks = 64
/** The most commands that wait for a free post. */
const maxWaiting = 256
/** The wait before the retry of a post, in milliseconds. */
const retryPause = 1000
/** The least time between two log lines about dropped commands, in milliseconds. */
const reportInterval = 60_000

/** The settings of commands. */
export interface CommandSettings extends CommandPattern {
  /** The callback of all commands if there is no list. */
  callbackUrl: string
  /** The listed commands by name. Absent: every name of the right length is a command. */
  commands?: ReadonlyMap<string, Command>
  /** The secret for signing posts, valid by `isSigningSecret`; empty for no signatures. */
  secret: string
  /** Whether to retry once if a callback answers 503, or not at all. */
  retry: boolean
}

/** The origin of a command. */
export interface Source {
  /** The bot that received the command, and sends the reply. */
  bot: BotSelector
  /** The account of the sender. */
  userId: string
  /** The target of the reply, unless the reply names another. */
  target: Target
  messageId: string
  /** The number of the message on the platform's server, if it has one of its own there. */
  sequence?: string
}

/** The parts of the plugin that commands need. */
export interface CommandOptions {
  relay: Pick<Relay, 'submit' | 'active'>
  /**
   * Reads a message: `text` without the bot name that some platforms append to a command, `raw` as typed, and its source, which is
   * `undefined` if a reply is not wanted or not possible.
   */
  readIncoming: (session: Session) => { readonly text: string, readonly raw: string, readonly source: Source | undefined }
  /** Counts the replies in progress. */
  inFlight: InFlight
  logger: Log
  /** The time for each exchange with a callback, in milliseconds. */
  timeout: number
}

/** The settings of commands as they stand in koishi.yml. */
interface WrittenSettings {
  commands: Parameters<typeof parseCommands>[0] | undefined
  commandCallbackUrl: string
  /** `undefined` if it is malformed: then nothing is forwarded. */
  commandCallbackSecret: string | undefined
  commandCallbackRetry: boolean
  commandPrefix: string
  commandLength: CommandPattern['length']
}

/** Forwards commands, if the settings name a callback for any. */
export function startCommands(ctx: Context, settings: WrittenSettings, { warn, ...options }: CommandOptions & { warn: Warn }): void {
  const { commandCallbackUrl: callbackUrl, commandCallbackSecret: secret, commandPrefix: prefix, commandLength: length } = settings
  const { commands, warnings } = parseCommands(settings.commands ?? [], callbackUrl, prefix)
  warn('commands', warnings)
  // With a list, even a malformed one, only its commands are forwarded.
  const isListed = settings.commands?.length !== 0
  if (secret === undefined || !(isListed ? commands.size > 0 : callbackUrl)) return
  const pattern = { prefix, length, callbackUrl, ...isListed && { commands } }
  listenForCommands(ctx, { ...pattern, secret, retry: settings.commandCallbackRetry }, options)
}

/**
 * Posts commands from chats to their callbacks, and sends the replies.
 *
 * A message that is not a command, or whose callback gives no reply, goes on to the other middlewares. A message with a reply ends here,
 * even if the reply cannot be delivered. Waiting for a callback delays only this message, because Koishi runs the middlewares of each
 * message separately. Commands of a flood that cannot be posted in time are dropped: they go on to the other middlewares, and the log has
 * their number. When the context is disposed, running exchanges end, and no more replies are sent.
 */
function listenForCommands(ctx: Context, settings: CommandSettings, options: CommandOptions): void {
  const { relay, readIncoming, inFlight, logger, timeout } = options
  const { prefix, length, callbackUrl, commands, secret, retry } = settings
  const common = parseEndpoint(callbackUrl)
  const lifetime = new AbortController()
  const { signal } = lifetime
  let dropped = 0
  const reportDropped = (count: number): void => {
    logger.warn(count === 1 ? say('command-dropped') : say('commands-dropped', { count }))
    dropped = 0
  }
  const reportSometimes = ctx.throttle(reportDropped, reportInterval)
  ctx.on('dispose', () => {
    lifetime.abort()
    if (dropped > 0) reportDropped(dropped)
  })
  // The patience is the timeout of an answer: a member does not expect a reply after that.
  const callbacks = new Limiter({ concurrency: maxCallbacks, capacity: maxWaiting, patience: timeout })

  /** The callback of a command, or the text of the reply; `undefined` if there is no such command, or not for this member. */
  const find = ({ command: name }: CommandMatch, source: Source): Endpoint | string | undefined => {
    const command = commands?.get(name)
    if (!commands) return common
    if (!command) return name === helpName ? helpFor(commands, prefix, source) : undefined
    if (mayUse(command, source)) return command.endpoint
    startEntry(logger, uuid(), name, source.target)('info', say('command-not-allowed'))
  }

  /** Posts a command, with one retry if the settings allow it. It keeps its place among the concurrent posts meanwhile. */
  const post = async (id: string, endpoint: Endpoint, body: CommandBody, event: string): Promise<JsonObject | undefined> => {
    const options: CommandPost = { http: httpOf(ctx), timeout, stop: signal, ...(secret || retry) && { identity: { id: event, secret } } }
    try {
      return await postCommand(endpoint, body, options)
    } catch (error) {
      if (!retry || signal.aborted || !(error instanceof CallbackError) || !error.isTemporary) throw error
      logger.warn(say('callback-again', { id, reason: error.said }))
    }
    await setTimeout(retryPause, undefined, { signal })
    return postCommand(endpoint, body, options)
  }

  const ask = async (id: string, endpoint: Endpoint, body: CommandBody, event: string): Promise<Reply | undefined> => {
    const response = await post(id, endpoint, body, event)
    if (response && !('reply' in response || 'messages' in response)) {
      throw new CallbackError(foundInstead(say('callback-neither'), response, replyFields))
    }
    const reply = response && parseReply(response)
    const [first] = reply?.items ?? []
    if (first instanceof RelayError && reply?.items.every(item => item instanceof RelayError)) {
      throw new CallbackError(say('callback-all-wrong', { reason: first.said }))
    }
    return reply
  }

  /** Sends the valid items of a reply, and logs each of the others. @throws RelayError if no item was sent */
  const deliver = async (id: string, { bot, target }: Source, reply: Reply): Promise<void> => {
    for (const item of reply.items) if (item instanceof RelayError) logger.warn(say('reply-item-left-out', { id, reason: item.said }))
    const items = reply.items.filter(item => !(item instanceof RelayError))
    const leave = inFlight.enter()
    try {
      const to = reply.target && writeTarget(reply.target) !== writeTarget(target) ? reply.target : target
      const { delivery } = await relay.submit({ id, door: 'commands', request: { mode: 'batch', target: to, bot, items } })
      const { results } = delivery
      const errors = results.flatMap(result => result?.success === false ? [result.error] : [])
      const worst = resultOf(delivery)
      if (worst?.success === false && errors.length === results.length) throw worst.error
      for (const { status, logText } of errors) logger.warn(say('reply-item-failed', { id, status, reason: logText }))
    } finally {
      leave()
    }
  }

  /**
   * Handles a command; never throws.
   *
   * @param event the identity of its message
   * @returns whether there was a reply, so that the message ends here
   */
  const handle = async (source: Source, answer: Endpoint | string, body: CommandBody, event: string | undefined): Promise<boolean> => {
    // A standby does not post the command, because the active relay does.
    if (await relay.active().then(() => false, () => true)) return false
    const id = uuid()
    const log = startEntry(logger, id, body.command, source.target)
    let reply: Reply | undefined
    try {
      if (typeof answer === 'string') reply = { items: [{ type: 'text', text: answer }] }
      else {
        reply = await callbacks.run(async () => {
          signal.throwIfAborted()
          return ask(id, answer, body, event ?? id)
        })
      }
      // The context may have been disposed right after the answer.
      signal.throwIfAborted()
    } catch (error) {
      if (signal.aborted) log('info', say('command-given-up'))
      else if (error instanceof OverloadError) reportSometimes(++dropped)
      else log('warn', say('command-no-reply-because', { reason: reasonOf(error) }))
      return false
    }
    if (!reply) {
      log('info', say('command-no-reply'))
      return false
    }
    try {
      await deliver(id, source, reply)
      log('info', say('command-replied'))
    } catch (error) {
      log('warn', say('reply-not-delivered', { reason: reasonOf(error) }))
      // A reply with a malformed target does not count as a reply.
      if (error instanceof RelayError && error.code === 'bad-request') return false
    }
    return true
  }

  const hearings = new Hearings(() => ctx.bots)

  /** Starts handling a command. @returns whether there was a reply; `undefined` for a message that is not a command */
  const hear = (session: Session): Promise<boolean> | undefined => {
    const incoming = readIncoming(session)
    const match = commands ? matchNamed(incoming.text, prefix) : matchCommand(incoming.text, { prefix, length })
    if (!match || signal.aborted) return
    const { raw, source } = incoming
    const identities = source ? identitiesOf(source) : []
    if (!source || hearings.isOwnOrDuplicate(source, raw, identities)) return
    const answer = find(match, source)
    if (answer !== undefined) return handle(source, answer, toBody(match, raw, source), identities[0])
  }

  ctx.middleware((session, next) => {
    const handled = hear(session)
    return handled ? handled.then(ended => ended ? undefined : next()) : next()
  }, true)

  // Commands that the platform itself reports skip the middlewares. So Koishi's command of that name waits for the reply from here.
  const heard = new WeakMap<object, Promise<boolean>>()
  ctx.on('interaction/command', session => {
    const handled = hear(session)
    if (handled) heard.set(unwrap(session), handled)
  }, { prepend: true })
  ctx.before('command/execute', async ({ session }) => {
    if (session && await heard.get(unwrap(session))) return ''
  })
  const origins = commands ? [...new Set([...commands.values()].map(({ endpoint }) => endpoint.origin))] : common?.origin ?? ''
  logger.info(commands
    ? say('listening-named', { names: [...commands.keys()].map(name => `"${prefix}${name}"`), origins })
    : say('listening-prefix', { prefix, length, origins }))
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
 * Starts the log line of a command: its ID, name, origin, outcome and duration from now on. The line contains neither the text of the
 * member nor the answer of the callback.
 */
function startEntry(logger: Log, id: string, command: string, { kind, id: target }: Target) {
  const start = performance.now()
  return (level: 'info' | 'warn', outcome: Text): void => {
    const time = Math.round(performance.now() - start)
    logger[level](say('command-line', { id, name: command, place: `${kind} "${target}"`, outcome, time }))
  }
}

/** The reason why a command had no reply. Texts of foreign errors are left out, because they may contain the message. */
function reasonOf(error: unknown): Text {
  if (error instanceof RelayError) return say('reason-with-code', { reason: error.logText, code: error.code })
  return error instanceof CallbackError ? error.said : words(describePlace(error))
}
