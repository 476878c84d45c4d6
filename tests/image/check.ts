// Checks the container image where none can be built: carries out the Dockerfile in temporary folders and starts what it holds, as the user
// of the image and with the settings of compose.yml and compose.standby.yml. The simulator stands for NapCat.
import assert from 'node:assert/strict'
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Simulator } from '../../simulator'
import { record, records } from '../docs/support/json'
import { repository } from '../docs/support/pages'
import { MariaDb, missing, type Access } from '../integration/several-relays/mariadb'
import { end, freePort } from '../support/process'
import { until } from '../support/until'
import { ComposeFile, variables } from './compose'
import { carryOut, type Stage } from './dockerfile'

const patience = 60_000
const compose = new ComposeFile('compose.yml')
const standby = new ComposeFile('compose.standby.yml')

const isRoot = process.getuid?.() === 0
const containers: Container[] = []

/** A container, but for its walls. */
class Container {
  private constructor(
    private readonly image: Stage,
    readonly process: ChildProcess,
    private readonly port: number,
    private readonly options: object,
  ) {}

  static async start(image: Stage, environment: Record<string, string>): Promise<Container> {
    const port = await freePort()
    const uid = Number(image.settings.USER)
    const options = {
      cwd: image.at('.'),
      env: {
        PATH: process.env.PATH, ...image.environment, ...variables, ...environment,
        WEBHOOK_HOST: '127.0.0.1', WEBHOOK_PORT: String(port), CONSOLE_PORT: String(await freePort()),
      },
      ...isRoot && { uid, gid: uid },
    }
    const [command = '', ...args] = strings(image.settings.CMD)
    const container = new Container(image, spawn(command, args, { ...options, stdio: 'inherit' }), port, options)
    containers.push(container)
    return container
  }

  get isHealthy(): boolean {
    const [, command = ''] = /CMD (.+)$/.exec(this.image.settings.HEALTHCHECK ?? '') ?? []
    return spawnSync('sh', ['-c', command || 'false'], this.options).status === 0
  }

  request(path: string, options: RequestInit = {}): Promise<Response> {
    const headers = { authorization: `Bearer ${variables.WEBHOOK_API_KEY}` }
    return fetch(`http://127.0.0.1:${this.port}${path}`, { ...options, headers })
  }

  async sends(text: string): Promise<boolean> {
    return (await this.request('/send/group:123456', { method: 'POST', body: text })).status === 200
  }

  /** Whether the balancer of compose.standby.yml would send requests here. */
  async isChosen(): Promise<boolean> {
    const balancer = standby.config('balancer')
    const [, path = ''] = /health_uri (\S+)/.exec(balancer) ?? []
    const [, pattern = ''] = /health_body "(.+)"\n/.exec(balancer) ?? []
    assert(balancer.includes(`Authorization "Bearer ${variables.WEBHOOK_API_KEY}"`))
    return new RegExp(pattern.replaceAll('\\"', '"')).test(await (await this.request(path)).text())
  }

  async stop(): Promise<void> {
    await end(this.process)
    assert.equal(this.process.exitCode, 0)
  }
}

/** The form of VOLUME and CMD that is a JSON array. */
function strings(text = '[]'): string[] {
  const list: unknown = JSON.parse(text)
  assert(Array.isArray(list))
  return list.map(String)
}

/** One relay, as compose.yml starts it. */
async function checkImage(image: Stage, simulator: Simulator): Promise<void> {
  for (const volume of strings(image.settings.VOLUME)) assert.equal((await stat(image.at(volume))).uid, Number(image.settings.USER), volume)
  const relay = await Container.start(image, { ...compose.environment('relay'), ONEBOT_ENDPOINT: simulator.endpoint })
  await until('it is healthy', () => relay.isHealthy, patience)
  await until('a message is sent', () => relay.sends('from the image'), patience)
  assert.equal(simulator.ledger.at(-1)?.text, 'from the image')
  const data = await readdir(image.at('/data'))
  assert(data.includes('koishi.db'), data.join())
  await relay.stop()
  assert(!relay.isHealthy, 'it is healthy without a process')
}

/** Two relays with a database server, as compose.standby.yml adds it. */
async function checkStandby(image: Stage, simulator: Simulator, { host, port, user, password, database }: Access): Promise<void> {
  const server = {
    DATABASE_HOST: host, DATABASE_PORT: String(port), DATABASE_USER: user, DATABASE_PASSWORD: password, DATABASE_NAME: database,
  }
  const startRelay = async (service: string): Promise<Container> => {
    const data = image.at(`/${service}`)
    await mkdir(data)
    await chmod(data, 0o777)
    const container = await Container.start(image, {
      ...standby.environment(service), ...server, ONEBOT_ENDPOINT: simulator.endpoint, DATA_DIR: data,
    })
    await until(`${service} is healthy`, () => container.isHealthy, patience)
    return container
  }
  const first = await startRelay('relay')
  await until('the first relay is active', () => first.isChosen(), patience)
  const second = await startRelay('standby')
  assert(!await second.isChosen())
  await first.stop()
  await until('the standby is active', () => second.isChosen(), patience)
  await until('it sends', () => second.sends('from the standby'), patience)
  await second.stop()
}

async function check(): Promise<void> {
  const [connection] = records(record(record(JSON.parse(compose.config('connections'))).network).websocketServers)
  const folder = await mkdtemp(join(tmpdir(), 'relay-image-'))
  const simulator = await Simulator.start({ token: String(connection?.token) })
  let database: MariaDb | undefined
  try {
    // The user of the image has to get in.
    await chmod(folder, 0o755)
    const image = carryOut(repository, folder, isRoot ? {} : { USER_ID: String(process.getuid?.()) })
    await checkImage(image, simulator)
    if (missing) {
      console.log(`not checked: compose.standby.yml, ${missing}`)
    } else {
      database = await MariaDb.start()
      await checkStandby(image, simulator, await database.create())
    }
    console.log(`image check passed, as user ${image.settings.USER ?? ''}`)
  } finally {
    await Promise.all(containers.map(container => end(container.process, 'SIGKILL')))
    await simulator.close()
    await database?.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

void check()
