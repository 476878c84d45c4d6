import { Context, HTTP, Logger, Universal } from 'koishi'
import * as proxyAgent from '@koishijs/plugin-proxy-agent'
import Server from '@koishijs/plugin-server'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Simulator } from '../../simulator'
import * as relay from '../../src'
import { holdAdapterTimers } from '../support/adapter-timers'
import { listen } from '../support/listen'
import { addForward } from '../support/onebot'
import { until } from '../support/until'
import { field } from './answers'
import { Disk, type Image } from './disk'
import { Random } from './random'

const apiKey = 'a-key-for-tests'

/** A relay in its own app. */
class RelayApp {
  private constructor(private readonly url: string, readonly stop: () => void) {}

  /** @param simulator its platform; without one, no bot is online, and all messages wait */
  static async start(folder: string, simulator?: Simulator): Promise<RelayApp> {
    const app = new Context()
    const forks = [app.plugin(HTTP), app.plugin(proxyAgent), app.plugin(Server, { host: '127.0.0.1', port: 0 })]
    if (simulator) forks.push(addForward(app, simulator.endpoint, { selfId: simulator.selfId }))
    const places = { uploadDir: join(folder, 'uploads'), dataDir: folder }
    forks.push(app.plugin(relay, { apiKey, chatSettleTime: 0.001, chatSendInterval: 0, chatQueueLimit: 1000, ...places }))
    await app.start()
    const { _http: server } = app.server
    const started = new RelayApp(`http://127.0.0.1:${await listen(server)}`, () => {
      server.closeAllConnections()
      for (const fork of forks.reverse()) fork.dispose()
    })
    await until('the relay has begun', async () => (await started.ask('/deliveries')).status === 200)
    if (simulator) await until('the bot is online', () => app.bots.some(({ status }) => status === Universal.Status.ONLINE))
    return started
  }

  async ask(path: string, init: RequestInit = {}): Promise<{ status: number, data: unknown }> {
    const headers = { 'x-api-key': apiKey, ...Object.fromEntries(new Headers(init.headers)) }
    const response = await fetch(this.url + path, { ...init, headers })
    return { status: response.status, data: field(await response.json(), 'data') }
  }

  send({ token, group, kind }: Message): Promise<{ status: number, data: unknown }> {
    const headers = { ...kind !== 'plain' && { 'idempotency-key': token }, ...kind === 'deferred' && { prefer: 'respond-async' } }
    return this.ask('/webhook', { method: 'POST', body: JSON.stringify({ group_id: group, msg: token }), headers })
  }

  /** The newest 1,000 deliveries. */
  async deliveries(): Promise<{ id: string, state: string }[]> {
    const list = field((await this.ask('/deliveries?limit=1000')).data, 'deliveries')
    return Array.isArray(list) ? list.map((each: unknown) => ({ id: String(field(each, 'id')), state: String(field(each, 'state')) })) : []
  }
}

/** A message of the traffic, with its Idempotency-Key. */
interface Message {
  token: string
  group: string
  kind: 'deferred' | 'keyed' | 'plain'
}

/** What the power cuts of a run showed. */
export interface TrafficReport {
  images: number
  /** Messages that were acknowledged before the power was cut, and asked for. */
  acknowledged: number
  missing: number
  /** Messages that were sent twice, or not at all although their keys were repeated. */
  doubled: number
  lost: number
}

/** How long a relay may take until it has sent or found what was under way, in milliseconds. */
const patience = 60_000
/** How many images are opened in each round, and how many messages are acknowledged between two at least, however slow the machine is. */
const perRound = 5
const leastBetween = 3

/**
 * Cuts the power of a relay that sends messages, again and again. Each image is opened by a new relay, which has to know all deliveries
 * that were acknowledged. The last one of each round goes on with the platform as it was at the cut: there all keys are repeated, and each
 * message is to be in its chat once.
 *
 * @param countsSyncs `false` for the control, in which the disk ignores the syncs of the store
 */
export async function cutPowerOfRelay(images: number, seed: number, countsSyncs = true): Promise<TrafficReport> {
  const random = new Random(seed)
  const report: TrafficReport = { images: 0, acknowledged: 0, missing: 0, doubled: 0, lost: 0 }
  const releaseTimers = holdAdapterTimers()
  Logger.levels.base = Logger.SILENT
  while (report.images < images) {
    const root = mkdtempSync(join(tmpdir(), 'relay-power-'))
    const simulator = await Simulator.start({ anyTarget: true, keep: 0 })
    const round = new Round(join(root, 'before'), random, countsSyncs, simulator)
    try {
      await round.run()
      for (const [index, { image, acknowledged }] of round.taken.entries()) {
        const folder = join(root, String(index))
        image.writeTo(folder)
        const isLast = index === round.taken.length - 1
        const app = await RelayApp.start(folder, isLast ? simulator : undefined)
        const known = new Set((await app.deliveries()).map(({ id }) => id))
        report.images++
        report.acknowledged += acknowledged.length
        report.missing += acknowledged.filter(id => !known.has(id)).length
        if (isLast) {
          const counts = await round.repeat(app)
          report.doubled += counts.filter(count => count > 1).length
          report.lost += counts.filter(count => count === 0).length
        }
        app.stop()
      }
    } finally {
      await simulator.close()
      rmSync(root, { recursive: true, force: true })
    }
  }
  releaseTimers()
  return report
}

/** Traffic until a power cut, and what comes after it. */
class Round {
  /** The images, with the deliveries that were acknowledged by then. */
  readonly taken: { image: Image, acknowledged: string[] }[] = []
  private readonly messages: Message[] = []
  private readonly acknowledged: string[] = []

  constructor(
    private readonly folder: string, private readonly random: Random, private readonly countsSyncs: boolean,
    private readonly simulator: Simulator,
  ) {}

  /** Resolves once the power was cut. */
  async run(): Promise<void> {
    const { random, simulator } = this
    mkdirSync(this.folder)
    const disk = new Disk(this.folder, this.countsSyncs, () => {
      if (random.chance(0.01)) this.take(disk)
    })
    const app = await RelayApp.start(this.folder, simulator)
    this.taken.length = 0
    const senders = Array.from({ length: 6 }, (_, index) => this.send(app, index))
    while (!this.isCut()) {
      await new Promise(resolve => setTimeout(resolve, random.between(1, 60)))
      if (random.chance(0.3)) this.take(disk)
    }
    app.stop()
    await Promise.all(senders)
    disk.end()
    await simulator.until(({ connections }) => connections === 0)
    simulator.clearFaults()
  }

  /** Repeats all messages with a key until they have ended. @returns how often each is in its chat */
  async repeat(app: RelayApp): Promise<number[]> {
    const keyed = this.messages.filter(({ kind }) => kind !== 'plain')
    await Promise.all(keyed.map(message => (
      until(`${message.token} was answered`, async () => [200, 202].includes((await app.send(message)).status), patience)
    )))
    const isOpen = async (): Promise<boolean> => (await app.deliveries()).some(({ state }) => state === 'queued' || state === 'sending')
    await until('all have ended', async () => !await isOpen(), patience)
    return keyed.map(({ token }) => this.simulator.ledger.filter(({ text }) => text === token).length)
  }

  private isCut(): boolean {
    return this.taken.length >= perRound
  }

  private take(disk: Disk): void {
    if (this.isCut() || this.acknowledged.length < leastBetween * (this.taken.length + 1)) return
    this.taken.push({ image: disk.cut(this.random), acknowledged: [...this.acknowledged] })
    // Nothing that the dead relay still sends reaches the platform.
    if (this.isCut()) this.simulator.fault({ fault: { kind: 'silent' }, action: /./, times: Infinity })
  }

  /** Sends one message after another. */
  private async send(app: RelayApp, sender: number): Promise<void> {
    for (let number = 0; !this.isCut(); number++) {
      const kind = this.random.pick(['deferred', 'deferred', 'keyed', 'keyed', 'plain'] as const)
      const message = { token: `message-${sender}-${number}`, group: String(1_000_000 + sender % 3), kind }
      this.messages.push(message)
      const answer = await app.send(message).catch(() => undefined)
      // Later answers come from a dead relay.
      if (kind === 'plain' || this.isCut()) continue
      if (answer?.status === 202 || answer?.status === 200) this.acknowledged.push(String(field(answer.data, 'delivery_id')))
    }
  }
}
