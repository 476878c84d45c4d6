import OneBotBot from '@koishijs/plugin-adapter-onebot'
import * as proxyAgent from '@koishijs/plugin-proxy-agent'
import { Context, HTTP, Logger, Universal, type Bot, type ForkScope } from 'koishi'
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { Simulator, type SimulatorOptions } from '../../../simulator'
import { lookUp } from '../../../src/platform/onebot/history'
import { requestOf } from '../../../src/platform/onebot/request'
import { Sightings } from '../../../src/platform/onebot/sightings'
import type { LoadedItem } from '../../../src/relay/media'
import type { Target } from '../../../src/message/model'
import { isObject } from '../../../src/message/parse'
import { until } from '../../support/until'

export const group: Target = { kind: 'group', id: '123456' }
export const friend: Target = { kind: 'private', id: '10001' }

export function text(content: string): LoadedItem {
  return { type: 'text', text: content }
}

/** A picture of one transparent pixel. */
export const picture: LoadedItem = { type: 'image', name: 'a.png', src: 'data:image/png;base64,iVBORw0KGgo=' }

export function file(name: string, bytes: string): LoadedItem {
  return { type: 'file', name, src: `data:text/plain;base64,${Buffer.from(bytes).toString('base64')}` }
}

/** A bot of the real adapter on a simulator, with the sightings of a relay. */
export interface Stage {
  app: Context
  bot: Bot
  simulator: Simulator
  sightings: Sightings
  /** Calls an action; gives the message ID of its answer, if it has one. */
  call: (action: string, params: object) => Promise<string | undefined>
  /** Calls one that the simulator performs without answering. */
  callUnanswered: (action: string, params: object) => Promise<void>
  lookUp: (target: Target, items: readonly LoadedItem[], since: number) => ReturnType<typeof lookUp>
}

export async function stage(t: TestContext, options: SimulatorOptions = {}): Promise<Stage> {
  // What Koishi prints would mix with the results.
  for (const target of Logger.targets) if (target.print !== undefined) (target.levels ?? Logger.levels).base = Logger.SILENT
  const simulator = await Simulator.start(options)
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
  const sightings = new Sightings(app)
  await app.start()
  await until('the bot is online', () => app.bots.some(({ status }) => status === Universal.Status.ONLINE))
  const [bot] = app.bots
  assert(bot)
  const request = (action: string, params: object): unknown => {
    const call = requestOf(bot)
    assert(call)
    return call(action, { ...params })
  }
  return {
    app,
    bot,
    simulator,
    sightings,
    async call(action, params) {
      const answer = await request(action, params)
      assert(isObject(answer) && answer.retcode === 0, JSON.stringify(answer))
      return isObject(answer.data) && typeof answer.data.message_id === 'number' ? String(answer.data.message_id) : undefined
    },
    async callUnanswered(action, params) {
      const delivered = simulator.ledger.length
      simulator.fault({ action, fault: { kind: 'lost-answer' } })
      void Promise.resolve(request(action, params)).catch(() => undefined)
      await simulator.until(({ ledger }) => ledger.length > delivered)
    },
    lookUp: (target, items, since) => lookUp(bot, target, items, since, sightings),
  }
}

/** The ID that the simulator gave its n-th delivery. */
export function deliveredId({ ledger }: Simulator, n: number): string {
  return String(ledger[n]?.messageId)
}
