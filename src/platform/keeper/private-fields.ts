import { Bot } from 'koishi'
import { fieldsOf, type JsonObject } from '../../lib/shape'
import { LostCall, Wire } from './wire'

/*
 * The private parts of koishi-plugin-adapter-onebot that the relay needs. Checked against version 6.9.4, and against ws 8.23.0;
 * `tests/integration/onebot/private-fields.test.ts` fails when a version keeps these things elsewhere.
 */

/** Whether this is a bot of the adapter. A bot of another one may be on a platform with the same name. */
export function isOneBot({ adapterName, platform }: Bot): boolean {
  return adapterName === 'onebot' && platform === 'onebot'
}

/**
 * Makes a call and resolves with the whole answer, unread: the methods of `bot.internal` return only the data of an answer, or the code of
 * a failure (upstream/08). Over a WebSocket, the call bypasses the adapter, which forgets it after its `responseTimeout` and keeps its
 * parameters until then (upstream/07). Source: `accept`, which sets `bot.internal._request`.
 *
 * @throws LostCall without a connection, or when it closes before the answer
 */
export function request(bot: Bot, action: string, params: JsonObject): Promise<unknown> {
  const internal: unknown = bot.internal
  const { _request: call } = fieldsOf(internal)
  if (typeof call !== 'function') return Promise.reject(new LostCall(false))
  return wireOf(bot)?.call(action, params) ?? Promise.resolve(Reflect.apply(call, internal, [action, params]))
}

/** Whether the bot has its way to make calls. The adapter removes it when the connection closes. */
export function hasRequest(bot: Bot): boolean {
  return typeof fieldsOf(bot.internal)._request === 'function'
}

/** How long the adapter waits for an answer to its own calls, in milliseconds; its default is a minute. */
export function responseTimeout(bot: Bot): number {
  const { responseTimeout: time } = fieldsOf(bot.config)
  return typeof time === 'number' ? time : 60_000
}

/** A view of a bot that records the whole answers to the calls that the adapter makes through it. For everything else it is the bot. */
export function recordAnswers(bot: Bot): { view: Bot, answers: unknown[] } {
  const answers: unknown[] = []
  const recording: unknown = Object.create(fieldsOf(bot.internal), {
    _request: {
      value: async (action: string, params: JsonObject) => {
        const answer = await request(bot, action, params)
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

const modes: ReadonlyMap<unknown, ConnectionMode> = new Map([['ws', 'forward'], ['ws-reverse', 'reverse']])

/** How this bot is connected, `undefined` when it is not a OneBot bot over WebSocket. */
export function connectionMode(bot: Bot): ConnectionMode | undefined {
  return isOneBot(bot) ? modes.get(fieldsOf(bot.config).protocol) : undefined
}

/**
 * The bot's present WebSocket, `undefined` when there is none. Source: `Adapter.WsClient` of @satorijs/core 4.6.0 (field `socket` of
 * the adapter) and `WsServer` of the adapter (field of the bot, named by a symbol).
 */
export function wireOf(bot: Bot): Wire | undefined {
  if (!isOneBot(bot)) return
  const { socket } = fieldsOf(bot.adapter)
  const symbol = socket ? undefined : Object.getOwnPropertySymbols(bot).find(({ description }) => description === 'socket')
  return Wire.of(symbol ? Reflect.get(bot, symbol) : socket, bot.sid)
}

/** Whether this bot dials this address. */
export function dials(bot: Bot, url: URL): boolean {
  const endpoint = connectionMode(bot) === 'forward' ? fieldsOf(bot.config).endpoint : undefined
  if (typeof endpoint !== 'string' || !URL.canParse(endpoint)) return false
  const { host, pathname } = new URL(endpoint)
  return url.host === host && url.pathname === pathname
}
