// Checks the container image where none can be built: carries out the Dockerfile in temporary folders and starts what it holds, as the user
// of the image and with the settings of compose.yml. The simulator stands for NapCat.
import assert from 'node:assert/strict'
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { chmod, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Simulator } from '../../simulator'
import { record, records } from '../docs/support/json'
import { repository } from '../docs/support/pages'
import { end, freePort } from '../support/process'
import { until } from '../support/until'
import { ComposeFile, variables } from './compose'
import { carryOut, type Stage } from './dockerfile'

const patience = 60_000
const compose = new ComposeFile('compose.yml')

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

/** The relay, as compose.yml starts it. */
async function checkImage(image: Stage, simulator: Simulator): Promise<void> {
  for (const volume of strings(image.settings.VOLUME)) assert.equal((await stat(image.at(volume))).uid, Number(image.settings.USER), volume)
  const relay = await Container.start(image, { ...compose.environment('relay'), ONEBOT_ENDPOINT: simulator.endpoint })
  await until('it is healthy', () => relay.isHealthy, patience)
  await until('a message is sent', () => relay.sends('from the image'), patience)
  assert.equal(simulator.ledger.at(-1)?.text, 'from the image')
  const data = await readdir(image.at('/data'))
  assert(data.includes('relay.db'), data.join())
  await relay.stop()
  assert(!relay.isHealthy, 'it is healthy without a process')
}

async function check(): Promise<void> {
  const [connection] = records(record(record(JSON.parse(compose.config('connections'))).network).websocketServers)
  const folder = await mkdtemp(join(tmpdir(), 'relay-image-'))
  const simulator = await Simulator.start({ token: String(connection?.token) })
  try {
    // The user of the image has to get in.
    await chmod(folder, 0o755)
    const image = carryOut(repository, folder, isRoot ? {} : { USER_ID: String(process.getuid?.()) })
    await checkImage(image, simulator)
    console.log(`image check passed, as user ${image.settings.USER ?? ''}`)
  } finally {
    await Promise.all(containers.map(container => end(container.process, 'SIGKILL')))
    await simulator.close()
    await rm(folder, { recursive: true, force: true })
  }
}

void check()
