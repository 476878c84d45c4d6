import { Context, h, HTTP, Logger, Universal, type Bot, type ForkScope } from 'koishi'
import * as proxyAgent from '@koishijs/plugin-proxy-agent'
import Server from '@koishijs/plugin-server'
import OneBotBot from '@koishijs/plugin-adapter-onebot'
import assert from 'node:assert/strict'
import { connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { Simulator, type SimulatorOptions } from '../../../simulator'
import { hasRequest } from '../../../src/platform/keeper/private-fields'
import { keepConnected } from '../../../src/platform/keeper/connection'
import { unwrap } from '../../../src/lib/koishi'
import { Log } from '../../../src/lib/log'
import { holdAdapterTimers, responseTimeout } from '../../support/adapter-timers'
import { listen } from '../../support/listen'
import { addForward, type DialOptions } from '../../support/onebot'
import { until } from '../../support/until'

/** What the requirement allows for sends to work again, in milliseconds. */
export const soon = 10_000

Logger.levels.base = Logger.SILENT
let apps = 0

/** A Koishi app that listens, with the keeper, and without bots so far. */
export interface TestApp {
  app: Context
  /** Address of the server, without its scheme. */
  host: string
  logger: Log
  /** What the keeper logged. */
  logs: readonly string[]
  keeper: ForkScope
  /** Loads the keeper again. */
  load: () => ForkScope
}

/** Starts an app that ends with the test. */
export async function startApp(t: TestContext, heartbeat?: number): Promise<TestApp> {
  const releaseTimers = holdAdapterTimers()
  const app = new Context()
  const logs: string[] = []
  // Tests run side by side, and all have the same targets.
  const logger = new Logger(`keeper-${++apps}`)
  const log = new Log(logger, 'en-US')
  const target: Logger.Target = {
    levels: { base: Logger.DEBUG },
    record: ({ name, content }) => {
      if (name === logger.name) logs.push(content)
    },
  }
  Logger.targets.push(target)
  const load = (): ForkScope => app.plugin({ name: 'keeper', apply: (ctx: Context) => keepConnected(ctx, log, heartbeat) })
  app.plugin(HTTP)
  app.plugin(proxyAgent)
  app.plugin(Server, { host: '127.0.0.1', port: 0 })
  const keeper = load()
  await app.start()
  const { _http: server } = app.server
  const port = await listen(server)
  t.after(async () => {
    // A frame that comes after the end of the app would be an error that nobody catches.
    for (const bot of [...app.bots]) await bot.stop()
    server.closeAllConnections()
    for (const scope of [...app.registry.values()].reverse()) scope.dispose()
    Logger.targets.splice(Logger.targets.indexOf(target), 1)
    releaseTimers()
  })
  return { app, host: `127.0.0.1:${port}`, logger: log, logs, keeper, load }
}

/** A simulator that ends with the test. */
export async function startSimulator(t: TestContext, options?: SimulatorOptions): Promise<Simulator> {
  const simulator = await Simulator.start({ anyTarget: true, ...options })
  t.after(() => simulator.close())
  return simulator
}

/** Adds a bot that is dialled. */
export function addReverse(app: Context, selfId = '10000'): ForkScope {
  return app.plugin<OneBotBot.Config>(OneBotBot, { protocol: 'ws-reverse', path: '/onebot', selfId, responseTimeout })
}

/** A running app, a simulator and a bot between them, online. */
export interface Pair extends TestApp {
  simulator: Simulator
  bot: Bot
}

/** Starts a pair with a connection of either mode. */
export async function startPair(t: TestContext, mode: 'forward' | 'reverse', config: DialOptions = {}): Promise<Pair> {
  const started = await startApp(t)
  let simulator: Simulator
  if (mode === 'forward') {
    simulator = await startSimulator(t)
    addForward(started.app, simulator.endpoint, config)
  } else {
    addReverse(started.app)
    simulator = await startSimulator(t, { reverse: { url: `ws://${started.host}/onebot`, redialInterval: 100 } })
  }
  const bot = botOf(started.app)
  await untilStatus(bot, Universal.Status.ONLINE)
  return { ...started, simulator, bot }
}

/** The bot of an account. */
export function botOf(app: Context, selfId = '10000'): Bot {
  const bot = app.bots[`onebot:${selfId}`]
  assert(bot)
  return unwrap(bot)
}

/** Waits until a bot has a status. */
export function untilStatus(bot: Bot, status: Universal.Status): Promise<void> {
  return until(`the bot has status ${status}`, () => bot.status === status, soon)
}

/** Waits until a send through the bot arrives on the platform. */
export async function untilSends(bot: Bot, simulator: Simulator, text: string): Promise<void> {
  await until('the bot can send', () => bot.status === Universal.Status.ONLINE && hasRequest(bot), soon)
  await bot.sendMessage('123456', h.text(text))
  assert.equal(simulator.ledger.filter(entry => entry.text === text).length, 1)
}

/** Counts how often a bot has come to a status from now on. */
export function countStatus(app: Context, bot: Bot, status: Universal.Status): () => number {
  let count = 0
  app.on('bot-status-updated', updated => {
    if (unwrap(updated) === bot && bot.status === status) count++
  })
  return () => count
}

/** What is known of a cable. */
export interface Cable {
  endpoint: string
  /** How many connections it has carried. */
  connections: () => number
  /** How often something came from the far side. */
  answers: () => number
  /** How long new connections take from now on, in milliseconds. */
  slow: (delay: number) => void
  cut: () => void
}

/** A relay of bytes that can go dumb without closing anything, like a network that is cut. */
export async function startCable(t: TestContext, port: number): Promise<Cable> {
  const sockets: Socket[] = []
  let accepted = 0
  let answers = 0
  let delay = 0
  const server = createServer(near => {
    accepted++
    const far = connect(port, '127.0.0.1')
    far.on('data', () => answers++)
    sockets.push(near, far)
    for (const [from, to] of [[near, far], [far, near]] as const) {
      from.on('error', () => to.destroy())
      from.on('close', () => to.destroy())
    }
    const timer = setTimeout(() => near.pipe(far).pipe(near), delay)
    near.on('close', () => clearTimeout(timer))
  })
  const own = await listen(server)
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    endpoint: `ws://127.0.0.1:${own}`,
    connections: () => accepted,
    answers: () => answers,
    slow(time) {
      delay = time
    },
    cut() {
      for (const socket of sockets) socket.unpipe().pause()
    },
  }
}
