import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Simulator, type SimulatorOptions } from '../../simulator'
import type { Config } from '../../src'
import { apiKey, startRelay, type TestRelay } from '../support/relay'
import { until } from '../support/until'
import { configOf, type Kind } from './kind'
import type { Disturbance } from './plan'
import { RelayProcess } from './process'

/** A relay and its platform. */
export interface World {
  readonly simulator: Simulator
  /** Sends a request with the key. Rejects if the relay is down. */
  request(path: string, init?: RequestInit): Promise<Response>
  /** Resolves when the relay accepts requests. */
  up(): Promise<void>
  disturb(what: Disturbance): Promise<void>
  /** Resolves when the disturbances are over and the bot is online. */
  settled(): Promise<void>
  stop(): Promise<void>
}

function simulatorOptions({ profile, history, reportSelf }: Kind): SimulatorOptions {
  return { profile, history, reportSelf, anyTarget: true, keep: 0 }
}

/** The common part of both kinds of world. */
abstract class AnyWorld implements World {
  abstract readonly simulator: Simulator
  abstract request(path: string, init?: RequestInit): Promise<Response>
  abstract up(): Promise<void>
  abstract stop(): Promise<void>
  private running = Promise.resolve()
  private isReloading = false

  disturb(what: Disturbance): Promise<void> {
    if (what.kind === 'disconnect') {
      this.simulator.disconnectAll(what.code)
      return Promise.resolve()
    }
    if (what.kind === 'frame') {
      this.simulator.transmit(what.frame)
      return Promise.resolve()
    }
    // A kill happens at once. Longer disturbances run one after another.
    const begun = this.begin(what)
    this.running = this.running.then(() => begun())
    return this.running
  }

  async settled(): Promise<void> {
    await this.running
    await this.simulator.goOnline()
    await until('the relay is ready', async () => {
      await this.up()
      return this.request('/readyz').then(({ status }) => status === 200, () => false)
    }, 30_000)
  }

  /** @returns the rest of the disturbance */
  protected begin(what: Disturbance): () => Promise<void> {
    if (what.kind !== 'restart') throw new Error(`${what.kind} is not for this world`)
    const offline = this.simulator.goOffline()
    return async () => {
      await offline
      await delay(what.away)
      await this.simulator.goOnline()
    }
  }

  /** Starts a reload at once. A reload during another one is part of it. */
  protected reloadOnce(reload: () => Promise<void>): () => Promise<void> {
    if (this.isReloading) return () => Promise.resolve()
    this.isReloading = true
    const reloaded = reload().finally(() => {
      this.isReloading = false
    })
    return () => reloaded
  }
}

/** A world with the relay in this process. */
export class LocalWorld extends AnyWorld {
  private constructor(private readonly relay: TestRelay) {
    super()
  }

  static async start(kind: Kind): Promise<LocalWorld> {
    const relay = await startRelay({ config: configOf(kind), simulator: simulatorOptions(kind) })
    await until('the relay is ready', async () => (await relay.request('/readyz')).status === 200)
    return new LocalWorld(relay)
  }

  get simulator(): Simulator {
    return this.relay.simulator
  }

  request(path: string, init?: RequestInit): Promise<Response> {
    return this.relay.request(path, init)
  }

  up(): Promise<void> {
    return Promise.resolve()
  }

  stop(): Promise<void> {
    return this.relay.stop()
  }

  protected override begin(what: Disturbance): () => Promise<void> {
    if (what.kind !== 'reload') return super.begin(what)
    return this.reloadOnce(() => this.relay.reload(undefined, what.after))
  }
}

/** A world with the relay in its own process, which can be killed. */
export class ProcessWorld extends AnyWorld {
  private process: Promise<RelayProcess>

  private constructor(readonly simulator: Simulator, private readonly config: Config, readonly folder: string) {
    super()
    this.process = this.launch()
  }

  /** @param more further settings of the relay */
  static async start(kind: Kind, more: Config = {}): Promise<ProcessWorld> {
    const folder = await mkdtemp(join(tmpdir(), 'faults-'))
    const world = new ProcessWorld(await Simulator.start(simulatorOptions(kind)), Object.assign(configOf(kind), more), folder)
    await world.settled()
    return world
  }

  async request(path: string, init?: RequestInit): Promise<Response> {
    return (await this.process).request(path, init)
  }

  async up(): Promise<void> {
    await this.process
  }

  async stop(): Promise<void> {
    await (await this.process).end('SIGKILL')
    await this.simulator.close()
    await rm(this.folder, { recursive: true, force: true })
  }

  protected override begin(what: Disturbance): () => Promise<void> {
    if (what.kind === 'reload') {
      return this.reloadOnce(() => this.process.then(process => process.reload(what.after)))
    }
    if (what.kind !== 'kill' && what.kind !== 'stop') return super.begin(what)
    const ended = this.process.then(process => process.end(what.kind === 'kill' ? 'SIGKILL' : 'SIGTERM'))
    this.process = ended.then(() => this.launch())
    return () => this.up()
  }

  private launch(): Promise<RelayProcess> {
    const { config, folder, simulator: { endpoint, selfId } } = this
    return RelayProcess.start({ config, apiKey, platform: { endpoint, selfId }, folder })
  }
}
