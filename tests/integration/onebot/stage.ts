import { Universal, type Bot, type Context } from 'koishi'
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { isObject } from '../../../src/lib/shape'
import type { Simulator, SimulatorOptions } from '../../../simulator'
import { anyPlatform } from '../../../src/platform/other/account'
import { Presence } from '../../../src/platform/presence'
import { Bots } from '../../../src/platform/bots'
import { oneBot } from '../../../src/platform/onebot/account'
import { request } from '../../../src/platform/keeper/private-fields'
import type { Account } from '../../../src/platform/port'
import { shortResponseTimeout } from '../../support/adapter-timers'
import { addForward } from '../../support/onebot'
import { botOf, startApp, startSimulator, untilStatus } from './support'

/** Begins an attempt that nobody gives up. */
export const begin = (): void => undefined

/** A bot of the real adapter on a simulator, with a port of its own. A connection that is lost stays lost. */
export interface Stage {
  app: Context
  /** Not one of Koishi's proxies. */
  bot: Bot
  simulator: Simulator
  account: Account
  /** Calls an action; gives the message ID of its answer, if it has one. */
  call: (action: string, params: object) => Promise<string | undefined>
  /** Calls one that the simulator performs without answering. */
  callUnanswered: (action: string, params: object) => Promise<void>
}

export async function stage(t: TestContext, options?: SimulatorOptions): Promise<Stage> {
  const { app, keeper } = await startApp(t)
  keeper.dispose()
  const simulator = await startSimulator(t, options)
  const port = new Bots(app, Presence.of(app), [oneBot, anyPlatform])
  addForward(app, simulator.endpoint, { responseTimeout: shortResponseTimeout, retryInterval: 500 })
  const bot = botOf(app)
  await untilStatus(bot, Universal.Status.ONLINE)
  return {
    app,
    bot,
    simulator,
    account: port.choose({}),
    async call(action, params) {
      const answer = await request(bot, action, { ...params })
      assert(isObject(answer) && answer.retcode === 0, JSON.stringify(answer))
      return isObject(answer.data) && typeof answer.data.message_id === 'number' ? String(answer.data.message_id) : undefined
    },
    async callUnanswered(action, params) {
      const delivered = simulator.ledger.length
      simulator.fault({ action, fault: { kind: 'lost-answer' } })
      void request(bot, action, { ...params }).catch(() => undefined)
      await simulator.until(({ ledger }) => ledger.length > delivered)
    },
  }
}

/** The ID that the simulator gave its n-th delivery. */
export function deliveredId({ ledger }: Simulator, n: number): string {
  return String(ledger[n]?.messageId)
}
