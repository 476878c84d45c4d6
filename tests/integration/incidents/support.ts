import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { SimulatorOptions } from '../../../simulator'
import type { Config } from '../../../src'
import { minute } from '../../../src/lib/time'
import { relayFor, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'

export const group = '123456'
/** Li Lei is on duty, Han Mei is of the rota, too, and Bob is not. */
export const [liLei, hanMei, bob] = ['10001', '10002', '10004']

/** A name whose incidents those on duty may take, and one whose incidents everybody may. */
const config: Config = {
  chatApiMaxRetries: 0,
  people: { 'li-lei': { onebot: liLei, name: '李雷' }, 'han-mei': { onebot: hanMei, name: '韩梅梅' } },
  rotas: { oncall: { people: ['li-lei', 'han-mei'], every: '1w', from: new Date(Date.now() - minute).toISOString() } },
  targets: {
    ops: { to: `group:${group}`, mention: { critical: 'oncall' }, ack: { who: ['oncall', 'han-mei'] } },
    open: { to: `group:${group}`, ack: {} },
  },
}

/** A relay with people and a rota, and what the members of the group do. */
export class Desk {
  /** @param passed the texts of members that went on to the other middlewares */
  private constructor(readonly relay: TestRelay, readonly passed: readonly string[]) {}

  static async open(t: TestContext, more: Config = {}, simulator: SimulatorOptions = {}): Promise<Desk> {
    const passed: string[] = []
    const relay = await relayFor(t, {
      simulator,
      config: { ...config, ...more },
      setup: app => {
        app.middleware((session, next) => {
          passed.push(session.content ?? '')
          return next()
        })
      },
    })
    return new Desk(relay, passed)
  }

  /** Something goes wrong. @returns the ID of its message */
  async alarm(msg: string, more: object = {}): Promise<number> {
    const from = this.relay.simulator.ledger.length
    const { status, msg: text } = await this.relay.send({ to: 'ops', msg, severity: 'critical', thread: msg, ...more })
    assert.equal(status, 200, text)
    return this.relay.simulator.ledger[from]?.messageId ?? assert.fail('it has arrived')
  }

  /** A member quotes a message, as QQ's apps do: with a mention of the bot. @returns the ID of what was said */
  quote(messageId: number, text: string, user = liLei, raw: Record<string, unknown> = {}): number {
    const segments = [{ type: 'at', data: { qq: '10000' } }, { type: 'text', data: { text: ` ${text}` } }]
    return this.relay.simulator.say({ group, user, replyTo: messageId, segments, raw })
  }

  react(messageId: number, emoji: string, user = liLei, isAdded = true, raw: Record<string, unknown> = {}): void {
    this.relay.simulator.react({ user, messageId, emoji, isAdded, raw })
  }

  /** What the bot says next, as soon as it has said so much. */
  async answers(count: number, act: () => void): Promise<string[]> {
    const { ledger } = this.relay.simulator
    const from = ledger.length
    act()
    await until(() => `${count} answers: ${JSON.stringify(this.relay.logs.slice(-8))}`, () => ledger.length >= from + count)
    return ledger.slice(from).map(({ text }) => text)
  }

  async answer(act: () => void): Promise<string> {
    const [text = '', ...others] = await this.answers(1, act)
    assert.deepEqual(others, [])
    return text
  }

  /** The ID of the message that the bot has sent last, once the relay knows it, too: it hears of it after the group. */
  async last(): Promise<number> {
    const { relay } = this
    const messageId = relay.simulator.ledger.at(-1)?.messageId ?? assert.fail('it has sent one')
    await until('the relay knows its ID', async () => (await (await relay.request('/deliveries')).text()).includes(`"${messageId}"`))
    return messageId
  }

  /** Does something that nobody is to hear of; what is heard next is the answer to a question about an incident. */
  async nothing(messageId: number, act: () => void): Promise<string> {
    return this.answer(() => {
      act()
      this.quote(messageId, '谁', hanMei)
    })
  }
}
