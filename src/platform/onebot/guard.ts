import type {} from '@koishijs/plugin-server'
import type { Bot, Context, Logger } from 'koishi'
import type { IncomingMessage } from 'node:http'
import type { WebSocket } from 'ws'
import { unwrap } from '../../lib/unwrap'
import { connectionMode, dials, isWireSocket, wireSocketOf } from './adapter'
import { Wire } from './wire'

/** The least time between two lines in the log about the same bot, in milliseconds. */
const reportInterval = 60_000

/** What was dropped of the frames for one bot. */
interface Dropped {
  /** Since the last line in the log. */
  count: number
  /** When the next line may be written, on the clock of `performance.now()`. */
  next: number
}

/**
 * Lets nothing come in over the connections of OneBot bots that would end the process, until the plugin is disposed:
 *
 * - Frames that adapter-onebot 6.9.4 cannot read are dropped, from the first one of each connection that is made from now on. Of a
 *   connection that exists already, they are from now on; one that is being made is looked after as soon as its bot is online.
 * - @koishijs/plugin-server 3.2 (field `_ws`) has no listener for the errors of the WebSockets that it accepts, so that a malformed
 *   frame from anybody, at any path, would be an uncaught exception. The adapter throws one, too, at a OneBot without `X-Self-ID`.
 *
 * The frames of a connection are looked at until it closes, also when the plugin is disposed: calls may be under way over it.
 */
export function guardConnections(ctx: Context, logger: Logger): void {
  const bots = unwrap(ctx.bots)
  const dropped = new WeakMap<Bot, Dropped>()

  const report = (bot: Bot, reason: string): void => {
    const state = dropped.get(bot) ?? { count: 0, next: -Infinity }
    dropped.set(bot, state)
    state.count++
    const now = performance.now()
    if (now < state.next) return
    const frames = state.count === 1 ? 'a frame that is' : `${state.count} frames that are`
    logger.warn('%s', `the bot ${bot.sid} got ${frames} no OneBot 11, dropped: ${reason}`)
    state.count = 0
    state.next = now + reportInterval
  }
  const guard = (bot: Bot, socket: unknown): void => {
    if (isWireSocket(socket)) Wire.of(socket).onDropped = reason => report(bot, reason)
  }
  const guardPresent = (traced: Bot): void => {
    const bot = unwrap(traced)
    guard(bot, wireSocketOf(bot))
  }

  for (const bot of bots) guardPresent(bot)
  ctx.on('bot-status-updated', guardPresent)

  ctx.on('http/websocket-init', (url, options) => {
    const bot = bots.map(unwrap).find(bot => dials(bot, url))
    if (!bot) return
    const { finishRequest } = options
    // Of the options of a WebSocket, the one that is given the socket before anything comes in.
    options.finishRequest = (request, socket) => {
      guard(bot, socket)
      if (finishRequest) finishRequest(request, socket)
      else request.end()
    }
  })

  const onConnection = (socket: WebSocket, { headers }: IncomingMessage): void => {
    // The socket closes after an error; there is nothing more to do about it.
    socket.on('error', error => logger.debug('%s', `a WebSocket was closed: ${error.message}`))
    if (headers['x-client-role'] !== 'Universal') return
    headers['x-self-id'] ??= ''
    const bot = bots.map(unwrap).find(bot => connectionMode(bot) === 'reverse' && bot.selfId === headers['x-self-id'])
    if (bot) guard(bot, socket)
  }
  const { _ws: server } = ctx.server
  server.prependListener('connection', onConnection)
  ctx.on('dispose', () => {
    server.off('connection', onConnection)
  })
}
