import { Bot } from 'koishi'
import { fieldsOf, type JsonObject } from '../../lib/shape'
import { SendError } from '../port'
import { Wire } from './wire'

/*
 * The private parts of koishi-plugin-adapter-onebot that the relay needs. Checked against version 6.9.4, and against ws 8.23.0;
 * `tests/integration/onebot/private-fields.test.ts` fails when a version keeps these things elsewhere.
 */

/** Whether this is a bot of the adapter. A bot of another one may be on a platform with the same name. */
export function isOneBot({ adapterName, platform }: Bot): boolean {
  return adapterName === 'onebot' && platform === 'onebot'
}

/** Makes a call and resolves with the whole answer, unread. */
export type Request = (action: string, params: JsonObject) => Promise<unknown>

/**
 * The function that makes calls. The methods of `bot.internal` return only the data of an answer, or the code of a failure. Over a
 * WebSocket, the call bypasses the adapter, which forgets it after its `responseTimeout` and keeps the parameters for that long. Source:
 * `accept`, which sets `bot.internal._request`.
 *
 * @throws SendError `unsent` when the bot is not connected
 */
export function requestOf(bot: Bot): Request {
  const internal: unknown = bot.internal
  const { _request: request } = fieldsOf(internal)
  if (typeof request !== 'function') throw new SendError('unsent')
  const wire = wireOf(bot)
  if (wire) return wire.call.bind(wire)
  return async (...args): Promise<unknown> => await Reflect.apply(request, internal, args)
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

/**
 * A view of a bot that records the whole answers to the calls that the adapter makes through it. For everything else it is the bot.
 *
 * @throws SendError `unsent` when the bot is not connected
 */
export function recordAnswers(bot: Bot): { view: Bot, answers: unknown[] } {
  const answers: unknown[] = []
  const internal: unknown = bot.internal
  const request = requestOf(bot)
  const recording: unknown = Object.create(fieldsOf(internal), {
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
