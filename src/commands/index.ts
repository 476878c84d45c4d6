import { setMaxListeners } from 'node:events'
import type { Bot, Context, Logger } from 'koishi'
import { v4 as uuid } from 'uuid'
import { RelayError } from '../errors'
import type { InFlight } from '../lib/in-flight'
import { describeOrigin, printable } from '../lib/log'
import type { Item, Reply, Target } from '../message/model'
import { parseReply } from '../message/parse'
import type { ItemResult } from '../relay/transmitter'
import { CallbackError, type CommandBody, parseEndpoint, postCommand } from './callback'
import { isOwnMessage, type Source, sourceOf, typedText } from './incoming'
import { type CommandMatch, type CommandPattern, matchCommand } from './matcher'

/** What is listened for, and who is told. */
export interface CommandSettings extends CommandPattern {
  callbackUrl: string
  /** For the whole exchange with the callback, in milliseconds. */
  timeout: number
}

/** A reply of the callback, as it is sent. */
export interface CommandReply {
  /** The command's ID in the log, a UUID. */
  id: string
  /** The bot that received the command. */
  bot: Bot
  target: Target
  items: readonly Item[]
}

/** What the commands need of the rest of the plugin. */
export interface CommandOptions {
  /** Sends a reply; a result for each item, in their order. */
  send: (reply: CommandReply) => Promise<readonly ItemResult[]>
  /** Counts the replies that are being sent. */
  inFlight: InFlight
  logger: Logger
}

/** Where a command came from, and so where its reply goes unless it says otherwise. */
type Origin = Pick<CommandReply, 'bot' | 'target'>

/**
 * Posts each message that is a command to the callback, and sends what it answers.
 *
 * A message goes on to the other middlewares when it is no command, and when its callback gives nothing that could be sent. It
 * ends here once there is a reply, even if that cannot be delivered. Waiting holds up this one message only, because Koishi runs
 * the middlewares of each message on their own. When the context is disposed, exchanges under way end and nothing more is sent.
 */
export function listenForCommands(ctx: Context, settings: CommandSettings, { send, inFlight, logger }: CommandOptions): void {
  const { prefix, length, callbackUrl, timeout } = settings
  const endpoint = parseEndpoint(callbackUrl)
  if (!endpoint) {
    logger.error('not listening for commands: the callback address is not an http(s) link')
    return
  }

  const lifetime = new AbortController()
  const { signal } = lifetime
  // Each exchange under way has a listener: many at a time are no leak.
  setMaxListeners(0, signal)
  ctx.on('dispose', () => lifetime.abort())

  const ask = async (body: CommandBody): Promise<Reply | undefined> => {
    const response = await postCommand(endpoint, body, { timeout, signal })
    const reply = response && parseReply(response)
    const [first] = reply?.items ?? []
    if (first instanceof RelayError && reply?.items.every(item => item instanceof RelayError)) {
      throw new CallbackError(`every item of messages is wrong, the first: ${first.message}`)
    }
    return reply
  }

  /** Sends the items of a reply that can be sent; the log has a line for each of the others. */
  const deliver = async (id: string, { bot, target }: Origin, reply: Reply): Promise<void> => {
    const warn = (text: string) => logger.warn('%s', `${id} an item of the reply ${text}`)
    for (const item of reply.items) if (item instanceof RelayError) warn(`is left out: ${item.message}`)
    const items = reply.items.filter((item): item is Item => !(item instanceof RelayError))
    const leave = inFlight.enter()
    try {
      for (const result of await send({ id, bot, target: reply.target ?? target, items })) {
        if (!result.success) warn(`failed: ${result.error.status} ${result.error.logText}`)
      }
    } finally {
      leave()
    }
  }

  /** Handles one command; never throws. Tells whether there was a reply, so that the message ends here. */
  const handle = async (origin: Origin, body: CommandBody): Promise<boolean> => {
    const id = uuid()
    const log = startEntry(logger, id, body.command, origin.target)
    let reply: Reply | undefined
    try {
      reply = await ask(body)
      // The context may have been disposed right after the answer came.
      signal.throwIfAborted()
    } catch (error) {
      if (signal.aborted) log('info', 'given up: the relay is stopping')
      else log('warn', `no reply: ${reasonOf(error)}`)
      return false
    }
    if (!reply) {
      log('info', 'no reply')
      return false
    }
    try {
      await deliver(id, origin, reply)
      log('info', 'replied')
    } catch (error) {
      log('warn', `the reply was not delivered: ${reasonOf(error)}`)
    }
    return true
  }

  ctx.middleware((session, next) => {
    const text = typedText(session)
    const match = matchCommand(text, { prefix, length })
    if (!match || signal.aborted || isOwnMessage(session)) return next()
    const source = sourceOf(session)
    if (!source) return next()
    const origin = { bot: session.bot, target: source.target }
    return handle(origin, toBody(match, text, source)).then(ended => ended ? undefined : next())
  }, true)
  logger.info('listening for commands: "%s" and %s characters, posted to %s', printable(prefix), length, endpoint.label)
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

/** Why a command came to nothing. Other errors than our own may hold what was to be sent in their texts. */
function reasonOf(error: unknown): string {
  if (error instanceof RelayError) return `${error.message} (${error.code})`
  return error instanceof CallbackError ? error.message : describeOrigin(error)
}
