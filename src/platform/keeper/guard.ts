import type {} from '@koishijs/plugin-server'
import type { Bot, Context } from 'koishi'
import type { IncomingMessage } from 'node:http'
import type { WebSocket } from 'ws'
import { unwrap } from '../../lib/koishi'
import type { Log } from '../../lib/log'
import { connectionMode, dials, wireOf } from './private-fields'
import { Wire, wireEvents } from './wire'
import { say, type Text } from '../../texts/text'

/** The least time between two lines in the log about the same bot, in milliseconds. */
const reportInterval = 60_000

/**
 * Keeps frames away that would end the process, until the plugin is disposed:
 *
 * - Frames of OneBot bots that adapter-onebot 6.9.4 cannot read are dropped, from the first frame of each new connection. A connection that
 *   exists already is guarded from now on; one that is being made, once its bot is online (upstream/06).
 * - @koishijs/plugin-server 3.2 (field `_ws`) has no listener for the errors of the WebSockets that it accepts, so a malformed frame of
 *   any client, on any path, would be an uncaught exception (upstream/10). The adapter throws such an exception at a OneBot without
 *   `X-Self-ID` (upstream/05).
 *
 * A wire goes on dropping frames until its connection closes, also when the plugin is disposed, because calls may be under way.
 *
 * @param refused called when a OneBot refuses the access token of a bot, or is logged in to another account, whose ID is then given
 */
export function guardConnections(ctx: Context, logger: Log, refused: (bot: Bot, account?: string) => void): void {
  const bots = unwrap(ctx.bots)
  /** When the log last reported a bot, on the monotonic clock. */
  const reported = new Map<string, number>()

  const onRefusal = (owner: string): void => {
    for (const bot of bots) if (bot.sid === owner) refused(unwrap(bot))
  }
  const onDrop = (owner: string, fault: Text): void => {
    const now = performance.now()
    if (now < (reported.get(owner) ?? -Infinity) + reportInterval) return
    reported.set(owner, now)
    logger.warn(say('frame-dropped', { bot: owner, fault }))
  }

  for (const bot of bots) wireOf(unwrap(bot))
  ctx.on('bot-status-updated', bot => void wireOf(unwrap(bot)))
  wireEvents.on('drop', onDrop)
  wireEvents.on('refused', onRefusal)

  ctx.on('http/websocket-init', (url, options) => {
    const bot = bots.map(unwrap).find(bot => dials(bot, url))
    if (!bot) return
    const { finishRequest } = options
    // The only option of a WebSocket that receives the socket before the first frame.
    options.finishRequest = (request, socket) => {
      Wire.of(socket, bot.sid)
      // The error of the bot does not tell (upstream/03).
      request.once('response', ({ statusCode }) => {
        if (statusCode === 401 || statusCode === 403) refused(bot)
      })
      if (finishRequest) finishRequest(request, socket)
      else request.end()
    }
  })

  const onConnection = (socket: WebSocket, { headers }: IncomingMessage): void => {
    // The socket closes after an error by itself.
    socket.on('error', error => logger.debug(say('websocket-closed', { words: error.message })))
    if (headers['x-client-role'] !== 'Universal') return
    headers['x-self-id'] ??= ''
    const id = String(headers['x-self-id'])
    const dialled = bots.map(unwrap).filter(bot => connectionMode(bot) === 'reverse')
    const bot = dialled.find(({ selfId }) => selfId === id)
    if (bot) Wire.of(socket, bot.sid)
    // The adapter closes it without a word.
    else if (/^\d+$/.test(id)) for (const each of dialled) if (!wireOf(each)) refused(each, id)
  }
  const { _ws: server } = ctx.server
  server.prependListener('connection', onConnection)
  ctx.on('dispose', () => {
    server.off('connection', onConnection)
    wireEvents.off('drop', onDrop)
    wireEvents.off('refused', onRefusal)
  })
}
