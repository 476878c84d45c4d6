import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'

/**
 * Tells whether a request was meant for a server, and was not made by the page of another one.
 *
 * A name that a stranger points to 127.0.0.1 makes a browser take this server for the stranger's own (DNS rebinding), and a WebSocket may
 * be opened by any page. Both give themselves away: a browser always says truly which host it asks (`Host`) and which page asks (`Origin`).
 *
 * @param host the address that the server listens on
 * @param port the port that it listens on
 */
export function isMeantFor({ headers }: Pick<IncomingMessage, 'headers'>, host: string, port: number): boolean {
  const asked = headers.host?.toLowerCase()
  if (asked === undefined || !namesOf(host).some(name => asked === `${name}:${port}` || (port === 80 && asked === name))) return false
  const { origin } = headers
  return origin === undefined || origin.toLowerCase() === `http://${asked}`
}

/** How a server is called by those who mean it: never by a name that somebody else can choose. */
function namesOf(host: string): string[] {
  const ofMachine = isWildcard(host) ? Object.values(networkInterfaces()).flatMap(list => list ?? []) : [{ address: host }]
  return ['localhost', '127.0.0.1', '[::1]', ...ofMachine.map(({ address }) => written(address))]
}

/** Whether a server that listens there is reached from other machines at every address of this one. */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}

/** An address as it stands in a URL. */
export function written(host: string): string {
  return isIP(host) === 6 ? `[${host.toLowerCase()}]` : host.toLowerCase()
}
