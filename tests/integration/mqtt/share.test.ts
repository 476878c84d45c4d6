import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Simulator } from '../../../simulator'
import { RelayProcess } from '../../faults/process'
import { temporaryFolder } from '../../support/folder'
import { apiKey } from '../../support/relay'
import { until } from '../../support/until'
import { Broker, mosquitto, settings } from './support'

const total = 1000
/** After how many messages of its own one relay is killed. */
const before = 150
const receiveMaximum = 20

describe('two relays that share a subscription', { skip: mosquitto.missing }, () => {
  test('send each of 1,000 messages, though one is killed among them; doubled is at most what it had not acknowledged', async t => {
    const broker = await Broker.start(t)
    const relays = await Promise.all(['one', 'two'].map(async clientId => {
      const simulator = await Simulator.start({ anyTarget: true })
      t.after(() => simulator.close())
      const mqtt = settings({ url: broker.url, clientId, receiveMaximum, subscriptions: [{ topic: '$share/relays/alerts/#', to: 'group:1' }] })
      const folder = temporaryFolder()
      const { endpoint, selfId } = simulator
      const start = async (): Promise<RelayProcess> => {
        const config = { chatSettleTime: 0.1, chatSendInterval: 0 }
        const started = await RelayProcess.start({ apiKey, platform: { endpoint, selfId }, folder, config, mqtt })
        t.after(() => started.end('SIGKILL'))
        await until('its bot is online', async () => (await started.request('/readyz')).status === 200, 60_000)
        return started
      }
      return { start, process: await start(), texts: () => simulator.ledger.map(({ text }) => text) }
    }))
    const [killed, other] = relays
    assert(killed && other)
    const client = await broker.client(t)
    const arrived = (): string[] => relays.flatMap(({ texts }) => texts())
    await until('both take part', async () => {
      await client.publish('alerts/first', 'first')
      return relays.every(({ texts }) => texts().length > 0)
    }, 60_000)

    const wanted = Array.from({ length: total }, (_, index) => `message ${index}`)
    const published = Promise.all(wanted.map(text => client.publish('alerts/a', text)))
    await until('the one has sent some', () => killed.texts().length > before, 120_000)
    await killed.process.end('SIGKILL')
    const unsent = wanted.filter(text => !arrived().includes(text)).length
    assert(unsent > 0, 'it was killed too late')
    await published
    await client.publish('alerts/a', 'while it is dead')
    await client.publish('alerts/a', 'while it is dead, too')
    await until('the other sends on', () => other.texts().some(text => text.startsWith('while')), 120_000)
    killed.process = await killed.start()
    await until('all have arrived', () => wanted.every(text => arrived().includes(text)), 120_000)
    const doubled = arrived().filter(text => text.startsWith('message')).length - total
    t.diagnostic(`${unsent} were left at the kill; ${killed.texts().length} and ${other.texts().length} sent, ${doubled} of them doubled`)
    assert(doubled <= receiveMaximum, `${doubled} are doubled`)
  })
})
