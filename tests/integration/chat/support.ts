import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { SimulatorOptions } from '../../../simulator'
import type { Config } from '../../../src'
import type { LedgerEntry } from '../../../simulator/types'
import { relayFor, type RelayOptions, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'

export const group = '123456'
/** An operator, one who reads English, and somebody else. */
export const [operator, english, other] = ['10001', '10002', '10004']

/** A relay with commands in the chat, and those who use them. */
export class Desk {
  private constructor(readonly relay: TestRelay) {}

  static async open(t: TestContext, config: Config = {}, simulator: SimulatorOptions = {}, setup?: RelayOptions['setup']): Promise<Desk> {
    const relay = await relayFor(t, {
      simulator, config: { chatCommands: true, chatOperators: [`onebot:${operator}`, `onebot:${english}`], ...config },
      setup: app => {
        // As in a bot whose settings say nothing of languages: Chinese comes first.
        Object.assign(app.i18n, { locales: { zh: { 'zh-CN': {} }, en: { 'en-US': {} } } })
        app.on('internal/session', session => {
          if (session.userId === english) session.locales = ['en-US']
        })
        setup?.(app)
      },
    })
    return new Desk(relay)
  }

  /** What the bot sends after somebody has said something: so many messages. */
  async hear(count: number, text: string, from: { group?: string, user?: string } = { group }): Promise<LedgerEntry[]> {
    const { simulator, logs } = this.relay
    const start = simulator.ledger.length
    simulator.say({ user: operator, ...from, text })
    await until(() => `${count} answers to ${text}: ${logs.slice(-5).join('\n')}`, () => simulator.ledger.length >= start + count)
    return simulator.ledger.slice(start)
  }

  async ask(text: string, from?: { group?: string, user?: string }): Promise<string> {
    const [answer, ...more] = await this.hear(1, text, from)
    assert.deepEqual(more, [])
    return answer?.text ?? ''
  }
}
