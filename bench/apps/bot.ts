import * as proxyAgent from '@koishijs/plugin-proxy-agent'
import Server from '@koishijs/plugin-server'
import OneBotBot from '@koishijs/plugin-adapter-onebot'
import { Context, HTTP, Universal } from 'koishi'
import { once } from 'node:events'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { numberOf, textOf } from '../lib/values'
import { serve } from './serve'

/** How long the bot may take to get online, in milliseconds. */
const patience = 30_000

/** The part of a benchmark app beside the server and the adapter. */
export type Addition = (app: Context, options: unknown) => void

/**
 * Serves commands that start a Koishi app like a user's: with the server and the OneBot adapter over WebSocket. Both sides differ
 * only in the addition.
 */
export function serveBot(add: Addition, commands: (app: Context) => Parameters<typeof serve>[0] = () => ({})): void {
  const app = new Context()
  const chat = createCounter(app)
  const delay = monitorEventLoopDelay({ resolution: 1 })
  serve({
    start: options => start(app, add, options),
    ...commands(app),
    ...chat,
    ...createTurnWatch(),
    cpu: () => ({ ...process.cpuUsage() }),
    watchDelay: () => {
      delay.reset()
      delay.enable()
      return {}
    },
    /** In milliseconds. */
    delay: () => ({ p99: delay.percentile(99) / 1e6, max: delay.max / 1e6 }),
  })
}

/**
 * Finds the longest turn of the event loop by processor time. Unlike the delay, processor time does not grow when the machine is busy with
 * other programs. The watch runs after every turn, and thus keeps the processor busy.
 */
function createTurnWatch() {
  let longest = 0
  let watch: NodeJS.Immediate | undefined
  const look = (before: number): void => {
    const { user, system } = process.cpuUsage()
    longest = Math.max(longest, user + system - before)
    watch = setImmediate(() => look(user + system))
  }
  return {
    watchTurns: () => {
      clearImmediate(watch)
      look(Infinity)
      longest = 0
      return {}
    },
    /** In milliseconds; ends the watch. */
    longestTurn: () => {
      clearImmediate(watch)
      return { cpu: longest / 1000 }
    },
  }
}

async function start(app: Context, add: Addition, options: unknown): Promise<object> {
  app.plugin(HTTP)
  app.plugin(proxyAgent)
  app.plugin(Server, { host: '127.0.0.1', port: 0 })
  app.plugin<OneBotBot.Config>(OneBotBot, {
    protocol: 'ws',
    endpoint: textOf(options, 'endpoint'),
    selfId: '10000',
    responseTimeout: numberOf(options, 'responseTimeout'),
    retryTimes: 6,
    retryInterval: 5_000,
    retryLazy: 60_000,
    proxyAgent: '',
  })
  add(app, options)
  await app.start()
  const { _http: server } = app.server
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const end = Date.now() + patience
  while (!app.bots.some(bot => bot.platform === 'onebot' && bot.status === Universal.Status.ONLINE)) {
    if (Date.now() > end) throw new Error('the bot is not online')
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  return { port: numberOf(server.address(), 'port') }
}

/** Counts the chat messages that passed every other plugin. */
function createCounter(app: Context) {
  let seen = 0
  let waiting: { count: number, resolve: (answer: object) => void } | undefined
  app.middleware((_session, next) => {
    if (++seen === waiting?.count) waiting.resolve({})
    return next()
  })
  return {
    /** Answers once `count` further messages have arrived. */
    heard: (argument: unknown) => new Promise<object>(resolve => {
      seen = 0
      waiting = { count: numberOf(argument, 'count'), resolve }
    }),
  }
}
