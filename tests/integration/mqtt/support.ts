import type { Context } from 'koishi'
import { connectAsync, type IClientPublishOptions, type IPublishPacket, type MqttClient } from 'mqtt'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import * as plugin from '../../../plugins/mqtt/src'
import type { Subscription } from '../../../plugins/mqtt/src/config'
import { temporaryFolder } from '../../support/folder'
import { end, freePort } from '../../support/process'
import { DebianPrograms } from '../../support/programs'
import { until } from '../../support/until'

export const mosquitto = new DebianPrograms('Mosquitto', 'mosquitto', ['mosquitto'])
export const openssl = new DebianPrograms('OpenSSL', 'openssl', ['openssl'])

/** A Mosquitto that keeps its sessions in a folder, so that it can be started again. */
export class Broker {
  private child: ChildProcess | undefined

  private constructor(private readonly file: string, readonly port: number) {}

  /** @param lines further lines of its configuration */
  static async start(t: TestContext, lines: readonly string[] = ['allow_anonymous true']): Promise<Broker> {
    const folder = temporaryFolder()
    const file = join(folder, 'mosquitto.conf')
    const port = await freePort()
    // As root, it would become a user who may not write to the folder.
    const settings = [`listener ${port} 127.0.0.1`, 'user root', 'persistence true', `persistence_location ${folder}/`, 'max_queued_messages 0', ...lines]
    writeFileSync(file, `${settings.join('\n')}\n`)
    const broker = new Broker(file, port)
    await broker.start()
    t.after(() => broker.stop())
    return broker
  }

  get url(): string {
    return `mqtt://127.0.0.1:${this.port}`
  }

  async start(): Promise<void> {
    this.child = spawn(mosquitto.path('mosquitto'), ['-c', this.file], { stdio: 'ignore' })
    await until('the broker listens', async () => {
      const socket = connect(this.port, '127.0.0.1')
      const isOpen = await once(socket, 'connect').then(() => true, () => false)
      socket.destroy()
      return isOpen
    })
  }

  async stop(): Promise<void> {
    if (this.child) await end(this.child)
  }

  /** A client of a test, which ends with it. */
  async client(t: TestContext): Promise<Client> {
    const client = await connectAsync(this.url, { protocolVersion: 5, reconnectPeriod: 0 })
    t.after(() => client.endAsync(true))
    return new Client(client)
  }
}

/** Publishes, and listens for answers. */
export class Client {
  constructor(readonly client: MqttClient) {}

  async publish(
    topic: string, payload: unknown, properties: IPublishPacket['properties'] = {}, options: IClientPublishOptions = {},
  ): Promise<void> {
    const text = typeof payload === 'string' || Buffer.isBuffer(payload) ? payload : JSON.stringify(payload)
    await this.client.publishAsync(topic, text, { qos: 1, properties, ...options })
  }

  /** What comes to a topic from now on. */
  async listen(topic: string): Promise<Answer[]> {
    const answers: Answer[] = []
    this.client.on('message', (to, payload, { properties }) => {
      if (to !== topic) return
      const body = JSON.parse(payload.toString()) as Record<string, unknown>
      answers.push({ body, correlation: properties?.correlationData?.toString() })
    })
    await this.client.subscribeAsync(topic, { qos: 1 })
    return answers
  }
}

export interface Answer {
  body: Record<string, unknown>
  correlation: string | undefined
}

type Settings = Omit<Partial<plugin.Config>, 'subscriptions'> & { subscriptions: (Partial<Subscription> & { topic: string })[] }

/** Loads the plugin, and waits until the broker knows its subscriptions. */
export async function load(
  t: TestContext, { app, logs }: { app: Context, logs: readonly string[] }, { url }: Broker, config: Settings,
): Promise<{ dispose: () => void }> {
  const before = logs.length
  const fork = app.plugin(plugin, settings({ url, ...config }))
  t.after(() => fork.dispose())
  await until('it is connected', () => logs.slice(before).some(line => line.includes('subscriptions: ')), 30_000)
  return fork
}

/** Complete settings. */
export function settings(config: Settings): plugin.Config {
  const subscriptions = config.subscriptions.map(subscription => ({ key: 'idempotency-key', ...subscription }))
  return { url: '', clientId: 'relay-1', sessionExpiry: 600, receiveMaximum: 100, retryDelay: 0.3, ...config, subscriptions }
}
