import { Bot } from 'koishi'
import { Socket } from 'node:net'
import { gather } from '../../lib/gather'
import { Wire, type WireSocket } from './wire'

/*
 * What is needed of koishi-plugin-adapter-onebot beyond its interface. Checked against version 6.9.4, and against ws 8.23.0;
 * `tests/integration/onebot/private-fields.test.ts` fails when one of them keeps these things elsewhere.
 */

/** As Koishi names the platform of these bots. */
export const platform = 'onebot'

/**
 * Makes a call and gives the whole answer, unread. The parameters are emptied when they are not needed any more: with them goes what
 * pictures and files hold.
 */
export type Request = (action: string, params: Params) => Promise<unknown>

type Params = Record<string, unknown>

/**
 * The way to a whole answer; it is there only while the bot is connected. The methods of `bot.internal` give no more than the data of
 * an answer, and of a failure only its code. Over a WebSocket the call is made past the adapter, which forgets a call after its
 * `responseTimeout` and keeps the parameters of each for that long. Source: `accept`, which sets `bot.internal._request`.
 */
export function requestOf(bot: Bot): Request | undefined {
  const internal: unknown = bot.internal
  const request = read(internal, '_request')
  if (typeof request !== 'function') return
  return async (action, params) => {
    const socket = wireSocketOf(bot)
    if (!socket) {
      const answered: Promise<unknown> = Promise.resolve(Reflect.apply(request, internal, [action, params]))
      return answered.finally(() => empty(params))
    }
    const stream = streamOf(bot)
    if (stream) gather(stream)
    const answer = Wire.of(socket).call(action, params)
    empty(params)
    return answer
  }
}

function empty(params: Params): void {
  for (const name of Object.keys(params)) params[name] = undefined
}

/** Whether the bot has its way to make calls, which the adapter takes away when the connection closes. */
export function hasRequest(bot: Bot): boolean {
  return typeof read(bot.internal, '_request') === 'function'
}

/** How long the adapter waits for an answer to its own calls, in milliseconds; its default is a minute. */
export function responseTimeout(bot: Bot): number {
  const time = read(bot.config, 'responseTimeout')
  return typeof time === 'number' ? time : 60_000
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

/** The bot's present WebSocket, if its frames can be reached. */
export function wireSocketOf(bot: Bot): WireSocket | undefined {
  const mode = connectionMode(bot)
  const socket = mode && socketOf(bot, mode)
  return isWireSocket(socket) ? socket : undefined
}

/** The connection under the bot's WebSocket, `undefined` when there is none. Source: `WebSocket` of ws (field `_socket`). */
export function streamOf(bot: Bot): Socket | undefined {
  const mode = connectionMode(bot)
  const stream = mode && read(socketOf(bot, mode), '_socket')
  return stream instanceof Socket ? stream : undefined
}

/** Whether a dial to this address is one of this bot's. */
export function dials(bot: Bot, url: URL): boolean {
  const endpoint = connectionMode(bot) === 'forward' ? read(bot.config, 'endpoint') : undefined
  if (typeof endpoint !== 'string' || !URL.canParse(endpoint)) return false
  const { host, pathname } = new URL(endpoint)
  return url.host === host && url.pathname === pathname
}

/** Whether it is a WebSocket whose frames can be reached. */
export function isWireSocket(value: unknown): value is WireSocket {
  return isSocket(value) && ['send', 'emit', 'once'].every(name => typeof read(value, name) === 'function')
}

function isSocket(value: unknown): value is AdapterSocket {
  return typeof read(value, 'readyState') === 'number' && typeof read(value, 'close') === 'function'
}

function read(value: unknown, key: string | symbol): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}
