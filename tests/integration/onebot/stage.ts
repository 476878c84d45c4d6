import OneBotBot from '@koishijs/plugin-adapter-onebot'
import * as proxyAgent from '@koishijs/plugin-proxy-agent'
import { Context, HTTP, Logger, Universal, type Bot, type ForkScope } from 'koishi'
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { Simulator, type SimulatorOptions } from '../../../simulator'
import { unwrap } from '../../../src/lib/unwrap'
import { isObject } from '../../../src/message/parse'
import { KoishiPort } from '../../../src/platform/koishi'
import { OneBot } from '../../../src/platform/onebot/account'
import { requestOf } from '../../../src/platform/onebot/adapter'
import type { Account, Port } from '../../../src/platform/port'
import { until } from '../../support/until'

/** Begins an attempt that nobody gives up. */
export const begin = (): void => undefined

/** A bot of the real adapter on a simulator, with a port of its own. */
export interface Stage {
  app: Context
  /** Not one of Koishi's proxies. */
  bot: Bot
  simulator: Simulator
  port: Port
  account: Account
  /** Calls an action; gives the message ID of its answer, if it has one. */
  call: (action: string, params: object) => Promise<string | undefined>
  /** Calls one that the simulator performs without answering. */
  callUnanswered: (action: string, params: object) => Promise<void>
}

export async function stage(t: TestContext, options: SimulatorOptions = {}): Promise<Stage> {
  // What Koishi prints would mix with the results.
  for (const target of Logger.targets) if (target.print !== undefined) (target.levels ?? Logger.levels).base = Logger.SILENT
  const simulator = await Simulator.start({ anyTarget: true, ...options })
  const app = new Context()
  const forks: ForkScope[] = [app.plugin(HTTP), app.plugin(proxyAgent), app.plugin<OneBotBot.Config>(OneBotBot, {
    protocol: 'ws',
    endpoint: simulator.endpoint,
    selfId: simulator.selfId,
    proxyAgent: '',
    // The adapter never clears its timers: a test file would not end before the last of them.
    responseTimeout: 1_000,
    retryTimes: 6,
    retryInterval: 5_000,
    retryLazy: 60_000,
  })]
  t.after(async () => {
    for (const fork of forks.reverse()) fork.dispose()
    await simulator.close()
  })
  const port = new KoishiPort(app, new OneBot(app))
  await app.start()
  await until('the bot is online', () => app.bots.some(({ status }) => status === Universal.Status.ONLINE))
  const [traced] = app.bots
  assert(traced)
  const bot = unwrap(traced)
  const account = port.choose({})
  const request = (action: string, params: object): Promise<unknown> => requestOf(bot)(action, { ...params })
  return {
    app,
    bot,
    simulator,
    port,
    account,
    async call(action, params) {
      const answer = await request(action, params)
      assert(isObject(answer) && answer.retcode === 0, JSON.stringify(answer))
      return isObject(answer.data) && typeof answer.data.message_id === 'number' ? String(answer.data.message_id) : undefined
    },
    async callUnanswered(action, params) {
      const delivered = simulator.ledger.length
      simulator.fault({ action, fault: { kind: 'lost-answer' } })
      void request(action, params).catch(() => undefined)
      await simulator.until(({ ledger }) => ledger.length > delivered)
    },
  }
}

/** The ID that the simulator gave its n-th delivery. */
export function deliveredId({ ledger }: Simulator, n: number): string {
  return String(ledger[n]?.messageId)
}
