import type { IncomingMessage } from 'node:http'

/** Whether a host name, as in a URL, is this machine. IPv6 may have brackets. */
export function isLoopbackHost(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || hostname === '::1' || /^127(\.\d{1,3}){3}$/.test(hostname)
}

function isLoopbackAddress(address: string | undefined): boolean {
  return address !== undefined && isLoopbackHost(address.replace(/^::ffff:/, ''))
}

/**
 * Why a request must not be served, or null. Every process and every web page on this machine can reach the port. The Host header exposes a
 * page that uses a name resolving to 127.0.0.1; the Origin header, which programs do not send, exposes a page of another origin.
 */
export function refusal(request: IncomingMessage): string | null {
  if (!isLoopbackAddress(request.socket.remoteAddress)) return 'only this machine may connect'
  const host = request.headers.host ?? ''
  const match = /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/i.exec(host)
  if (match === null) return 'the Host header must name this machine'
  const origin = request.headers.origin
  return origin === undefined || origin.toLowerCase() === `http://${host.toLowerCase()}` ? null : 'requests from other origins are refused'
}
