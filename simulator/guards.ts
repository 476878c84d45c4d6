import type { IncomingMessage } from 'node:http'

/** Whether a host name (as in a URL, IPv6 in brackets or not) is this machine. */
export function isLoopbackHost(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || hostname === '::1' || /^127(\.\d{1,3}){3}$/.test(hostname)
}

function isLoopbackAddress(address: string | undefined): boolean {
  return address !== undefined && isLoopbackHost(address.replace(/^::ffff:/, ''))
}

/**
 * Why a request must not be served, or null. The port is open to every process and every web page on this machine, so a
 * page elsewhere must not reach it by a name that resolves to 127.0.0.1 (the Host header tells) nor drive it from its own
 * origin (the Origin header tells; programs send none).
 */
export function refusal(request: IncomingMessage): string | null {
  if (!isLoopbackAddress(request.socket.remoteAddress)) return 'only this machine may connect'
  const host = request.headers.host ?? ''
  const match = /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/i.exec(host)
  if (match === null) return 'the Host header must name this machine'
  const origin = request.headers.origin
  return origin === undefined || origin.toLowerCase() === `http://${host.toLowerCase()}` ? null : 'requests from other origins are refused'
}
