import Console from '@koishijs/plugin-console'
import Server from '@koishijs/plugin-server'
import { Logger, type Context, type Plugin } from 'koishi'
import { createReadStream } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { isMeantFor, isWildcard, written } from './local'
import type { Address } from './ports'

const logger = new Logger('console')

/** What the bot may load only once: a second server of the same class would count as a double. */
class ConsoleServer extends Server {}

/** What the console takes of what its own schema has. */
interface ConsoleConfig {
  uiPath: string
  apiPath: string
  selfUrl: string
  open: boolean
  devMode: boolean
}

/** Its declarations give the class that it extends. */
function isPlugin(value: unknown): value is Plugin.Constructor<Context, ConsoleConfig> {
  return typeof value === 'function'
}

/** Loads the console, on the server that the context has. */
export function loadConsole(ctx: Context): void {
  const plugin: unknown = Console
  if (isPlugin(plugin)) ctx.plugin(plugin, { uiPath: '', apiPath: '/status', selfUrl: '', open: false, devMode: false })
}

/**
 * Koishi's console on a server of its own. Whoever can open it can send as the bot, so that it must not be on the port that callers use,
 * and answers nobody but pages of its own.
 *
 * @param page the folder with the built page of the relay
 */
export function serveConsole(ctx: Context, { host, port }: Address, page: string): void {
  const inner = ctx.isolate('server')
  inner.plugin(ConsoleServer, { host, port })
  inner.inject(['server'], ({ server }) => {
    // Without a listener, one frame that is malformed or too large would end the whole bot (upstream/10). The socket closes by itself.
    server._ws.prependListener('connection', (socket: WebSocket) => void socket.on('error', () => undefined))
    const isRight = (request: IncomingMessage): boolean => isMeantFor(request, host, port)
    server._http.prependListener('upgrade', (request: IncomingMessage, socket: Duplex) => {
      if (isRight(request)) return
      socket.on('error', () => undefined)
      // The server's own listener comes next, and takes no socket that has ended.
      socket.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
    })
    server.use(async (context, next) => {
      context.set({ 'Content-Security-Policy': 'frame-ancestors \'none\'', 'Cross-Origin-Resource-Policy': 'same-origin' })
      if (isRight(context.req)) await next()
      else context.throw(403)
    })
  })
  loadConsole(inner)
  inner.inject(['console', 'server'], ({ console, server }) => {
    // The console itself serves nothing but what lies in a folder node_modules.
    server.get('/@plugin-:id/:file(index\\.js|style\\.css)', async (context, next) => {
      const { id = '', file = '' } = context.params
      const { files } = console.entries[id] ?? {}
      if (typeof files !== 'object' || !('prod' in files) || files.prod !== page) {
        await next()
        return
      }
      context.type = file
      context.body = createReadStream(join(page, file))
    })
    logger.info('the page of the relay: %c', `http://${isWildcard(host) ? '127.0.0.1' : written(host)}:${port}/message-relay`)
    if (!isLoopback(host)) logger.warn('the console listens on %s: whoever reaches it can send as the bot and read all records', host)
  })
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}
