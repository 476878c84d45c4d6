import type { Bot } from 'koishi'
import { Socket } from 'node:net'

/** How a OneBot bot is connected; HTTP, and what is not known, is nobody's business here. */
export type LinkMode = 'forward' | 'reverse'

/** What is needed of the adapter's WebSocket, which is one of the library `ws`. */
export interface LinkSocket {
  readonly readyState: number
  close(): void
  terminate?(): void
}

/** States of a WebSocket, as its standard numbers them. */
export const socketState = { open: 1, closed: 3 } as const

/** How this bot is connected, `undefined` when it is not a OneBot bot over WebSocket. */
export function linkMode(bot: Bot): LinkMode | undefined {
  if (bot.platform !== 'onebot') return
  const protocol = read(bot.config, 'protocol')
  if (protocol === 'ws') return 'forward'
  return protocol === 'ws-reverse' ? 'reverse' : undefined
}

/** Whether the adapter has its way to make calls, which it takes away when the connection closes. */
export function hasRequest(bot: Bot): boolean {
  return typeof read(bot.internal, '_request') === 'function'
}

/**
 * The bot's present WebSocket, `undefined` when there is none or the adapter keeps it elsewhere than it did when this was
 * written. Source: adapter-onebot 6.9.4, `WsClient` (field of the adapter) and `WsServer` (field of the bot, named by a symbol).
 */
export function socketOf(bot: Bot, mode: LinkMode): LinkSocket | undefined {
  const socket = mode === 'forward'
    ? read(bot.adapter, 'socket')
    : Object.getOwnPropertySymbols(bot).filter(symbol => symbol.description === 'socket').map(symbol => read(bot, symbol))[0]
  return isSocket(socket) ? socket : undefined
}

/**
 * The connection under the bot's WebSocket, `undefined` when there is none or it is not to be seen. Source: ws 8, `WebSocket`
 * (field `_socket`).
 */
export function streamOf(bot: Bot): Socket | undefined {
  const mode = linkMode(bot)
  const stream = mode && read(socketOf(bot, mode), '_socket')
  return stream instanceof Socket ? stream : undefined
}

/** Whether a dial to this address is one of this bot's. */
export function dials(bot: Bot, url: URL): boolean {
  const endpoint = linkMode(bot) === 'forward' ? read(bot.config, 'endpoint') : undefined
  if (typeof endpoint !== 'string' || !URL.canParse(endpoint)) return false
  const { host, pathname } = new URL(endpoint)
  return url.host === host && url.pathname === pathname
}

function isSocket(value: unknown): value is LinkSocket {
  return typeof read(value, 'readyState') === 'number' && typeof read(value, 'close') === 'function'
}

function read(value: unknown, key: string | symbol): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}
