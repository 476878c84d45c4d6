import { Bot } from 'koishi'
import type { JsonObject } from '../../message/parse'

/*
 * What is needed of koishi-plugin-adapter-onebot beyond its interface. Checked against version 6.9.4, and against ws 8.23.0;
 * `tests/integration/onebot/private-fields.test.ts` fails when one of them keeps these things elsewhere.
 */

/** As Koishi names the platform of these bots. */
export const platform = 'onebot'

/** Makes a call and gives the whole answer, unread. */
export type Request = (action: string, params: JsonObject) => unknown

/**
 * The adapter's way to a whole answer; it is there only while the bot is connected. The methods of `bot.internal` give no more
 * than the data of an answer, and of a failure only its code. Source: `accept`, which sets `bot.internal._request`.
 */
export function requestOf(bot: Bot): Request | undefined {
  const internal: unknown = bot.internal
  const request = read(internal, '_request')
  if (typeof request !== 'function') return
  return (action, params): unknown => Reflect.apply(request, internal, [action, params])
}

/** Whether the bot has its way to make calls, which the adapter takes away when the connection closes. */
export function hasRequest(bot: Bot): boolean {
  return typeof read(bot.internal, '_request') === 'function'
}

/** A view of a bot that notes the whole answers to the calls that the adapter makes by itself. For everything else it is the bot. */
export function recordAnswers(bot: Bot): { view: Bot, answers: unknown[] } {
  const answers: unknown[] = []
  const internal: unknown = bot.internal
  const request = requestOf(bot)
  if (!request || typeof internal !== 'object') return { view: bot, answers }
  const recording: unknown = Object.create(internal, {
    _request: {
      value: async (...args: Parameters<Request>) => {
        const answer = await request(...args)
        answers.push(answer)
        return answer
      },
    },
  })
  const view: unknown = Object.create(bot, { internal: { value: recording } })
  return { view: isBot(view) ? view : bot, answers }
}

function isBot(value: unknown): value is Bot {
  return value instanceof Bot
}

/** How a bot is connected by WebSocket: it dials, or it is dialled. */
export type ConnectionMode = 'forward' | 'reverse'

/** What is needed of the adapter's WebSocket, which is one of the library `ws`. */
export interface AdapterSocket {
  readonly readyState: number
  close(): void
  terminate?(): void
}

/** States of a WebSocket, as its standard numbers them. */
export const socketState = { open: 1, closed: 3 } as const

/** How this bot is connected, `undefined` when it is not a OneBot bot over WebSocket. */
export function connectionMode(bot: Bot): ConnectionMode | undefined {
  if (bot.platform !== platform) return
  const protocol = read(bot.config, 'protocol')
  if (protocol === 'ws') return 'forward'
  return protocol === 'ws-reverse' ? 'reverse' : undefined
}

/**
 * The bot's present WebSocket, `undefined` when there is none. Source: `Adapter.WsClient` of @satorijs/core 4.6.0 (field `socket` of
 * the adapter) and `WsServer` of the adapter (field of the bot, named by a symbol).
 */
export function socketOf(bot: Bot, mode: ConnectionMode): AdapterSocket | undefined {
  const socket = mode === 'forward'
    ? read(bot.adapter, 'socket')
    : Object.getOwnPropertySymbols(bot).filter(symbol => symbol.description === 'socket').map(symbol => read(bot, symbol))[0]
  return isSocket(socket) ? socket : undefined
}

/** Whether a dial to this address is one of this bot's. */
export function dials(bot: Bot, url: URL): boolean {
  const endpoint = connectionMode(bot) === 'forward' ? read(bot.config, 'endpoint') : undefined
  if (typeof endpoint !== 'string' || !URL.canParse(endpoint)) return false
  const { host, pathname } = new URL(endpoint)
  return url.host === host && url.pathname === pathname
}

function isSocket(value: unknown): value is AdapterSocket {
  return typeof read(value, 'readyState') === 'number' && typeof read(value, 'close') === 'function'
}

function read(value: unknown, key: string | symbol): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}
