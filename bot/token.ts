import type {} from '@koishijs/plugin-server'
import type { Logger } from 'koishi'
import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { equalsSecret } from '../src/lib/crypto'

/** The least time between two lines in the log, in milliseconds. */
const reportInterval = 60_000

/**
 * Turns away whoever introduces himself as a OneBot implementation and does not give the token, because adapter-onebot 6.9.4 takes
 * whoever dials (upstream/09). To be called before the server listens. The log has at most one line a minute about it.
 *
 * The token is taken as OneBot 11 has it, from `Authorization: Bearer <token>` or from `access_token` in the address.
 * Source: https://github.com/botuniverse/onebot-11/blob/master/communication/authorization.md
 */
export function demandToken(server: Server, token: string, logger: Pick<Logger, 'warn'>): void {
  let reportedAt = -Infinity
  server.prependListener('upgrade', (request: IncomingMessage, socket: Duplex) => {
    // The adapter takes nobody without it. The path is not looked at: there are many ways to write one.
    if (request.headers['x-client-role'] === undefined || equalsSecret(givenToken(request), token)) return
    socket.on('error', () => undefined)
    if (performance.now() >= reportedAt + reportInterval) {
      reportedAt = performance.now()
      logger.warn('a OneBot implementation was turned away: its access token is not the one in ONEBOT_TOKEN')
    }
    // The server's own listener comes next, and takes no socket that has ended.
    socket.end('HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  })
}

function givenToken({ headers, url = '' }: IncomingMessage): string {
  const header = /^Bearer +(.*)$/i.exec(headers.authorization ?? '')?.[1]
  const query = url.indexOf('?')
  return header ?? (query < 0 ? '' : new URLSearchParams(url.slice(query)).get('access_token') ?? '')
}
