import { setMaxListeners } from 'node:events'
import type { Bot, Context } from 'koishi'
import { v4 as uuid } from 'uuid'
import { RelayError } from '../errors'
import type { Reply, Target } from '../message/model'
import { parseReply } from '../message/parse'
import { CallbackError, type CommandBody, postCommand } from './callback'
import { parseEndpoint } from './endpoint'
import { isOwnMessage, type Source, sourceOf, typedText } from './incoming'
import { createJournal } from './journal'
import { type CommandMatch, matchCommand } from './matcher'

/** What is listened for, and who is told (document, section 8). */
export interface CommandSettings {
  prefix: string
  /** Length of the command name, in Unicode code points. */
  length: number
  callbackUrl: string
  /** For the whole exchange with the callback, in milliseconds. */
  timeout: number
}

/** Where a command came from, and so where its reply goes unless it says otherwise. */
export interface Origin {
  /** The bot that received the command. Replies leave through it. */
  bot: Bot
  target: Target
}

/**
 * Sends a reply. Items that are RelayErrors are wrong: it leaves them out and logs them. It is never called with wrong items only.
 *
 * @param id the command's ID in the log, a UUID
 */
export type Deliver = (origin: Origin, reply: Reply, id: string) => Promise<void>

/**
 * Posts each message that is a command to the callback, and sends what it answers (document, "Command listening").
 *
 * A message goes on to the other middlewares when it is no command, and when its callback gives nothing that could be sent. It
 * ends here once there is a reply, even if that cannot be delivered. Waiting holds up this one message: Koishi runs the
 * middlewares of each on their own. When the context is disposed, exchanges under way end, and nothing is delivered afterwards.
 */
export function listen(ctx: Context, { prefix, length, callbackUrl, timeout }: CommandSettings, deliver: Deliver): void {
  const journal = createJournal(ctx.logger('message-relay'))
  const endpoint = parseEndpoint(callbackUrl)
  if (!endpoint) {
    journal.refused()
    return
  }

  const lifetime = new AbortController()
  const { signal } = lifetime
  // One listener for each exchange under way: many at a time are no leak.
  setMaxListeners(0, signal)
  ctx.on('dispose', () => {
    lifetime.abort()
  })

  const ask = async (body: CommandBody): Promise<Reply | undefined> => {
    const response = await postCommand(endpoint, body, { timeout, signal })
    const reply = response && parseReply(response)
    const [first] = reply?.items ?? []
    if (first instanceof RelayError && reply?.items.every(item => item instanceof RelayError)) {
      throw new CallbackError(`every item of messages is wrong, the first: ${first.message}`)
    }
    return reply
  }

  /** Handles one command; never throws. Tells whether there was a reply, so that the message ends here. */
  const handle = async (origin: Origin, body: CommandBody): Promise<boolean> => {
    const id = uuid()
    const entry = journal.open(id, body.command, origin.target)
    let reply: Reply | undefined
    try {
      reply = await ask(body)
      // The answer may have come in the very turn in which the context was disposed.
      signal.throwIfAborted()
    } catch (error) {
      if (signal.aborted) entry.info('given up: the relay is stopping')
      else entry.failed('no reply', error)
      return false
    }
    if (!reply) {
      entry.info('no reply')
      return false
    }
    try {
      await deliver(origin, reply, id)
      entry.info('replied')
    } catch (error) {
      entry.failed('the reply was not delivered', error)
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
  journal.listening(endpoint, prefix, length)
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
