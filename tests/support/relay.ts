import { Context, HTTP, Logger, Universal } from 'koishi'
import * as proxyAgent from '@koishijs/plugin-proxy-agent'
import Server from '@koishijs/plugin-server'
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Simulator, type SimulatorOptions } from '../../simulator'
import * as relay from '../../src'
import { fieldsOf, type JsonObject } from '../../src/lib/shape'
import { holdAdapterTimers } from './adapter-timers'
import { listen } from './listen'
import { addForward } from './onebot'
import { assertConforming, watchAnswers, watchRequest } from './openapi'
import { until } from './until'

/** The key of every relay of the tests. */
export const apiKey = 'a-key-for-tests'

export interface RelayOptions {
  config?: relay.Config
  /** Unlike a platform, the test's simulator creates the chats that a test writes to, unless this says otherwise. */
  simulator?: SimulatorOptions
  /** The address of a forward proxy for the app. */
  proxy?: string
  /** Runs with the app before the relay is loaded. */
  setup?: (app: Context) => void
}

/**
 * A relay in its own Koishi app, connected through the real adapter to its own simulator. `request`, `read` and `stop` fail if an answer
 * does not conform to docs/openapi.yaml.
 */
export interface TestRelay {
  app: Context
  simulator: Simulator
  /** The address without a trailing slash. */
  url: string
  /** Folder of uploads. */
  uploadDir: string
  /** Folder of the data file, unless the configuration has another. */
  dataDir: string
  /** Every line logged since the start, without its time. */
  logs: readonly string[]
  /** Sends a request with the key. */
  request: (path: string, init?: RequestInit) => Promise<Response>
  /** `POST /webhook` with this body. */
  send: (body: unknown, headers?: Record<string, string>) => Promise<Reply>
  /** Unloads the relay; the rest of the app stays. */
  unload: () => void
  /** Unloads the relay and loads it again, with this configuration, after this many milliseconds or at once. */
  reload: (config?: relay.Config, after?: number) => Promise<void>
  /** Updates the configuration, as an edit on Koishi's config page does. Without a difference it has no effect. */
  update: (config: relay.Config) => Promise<void>
  stop: () => Promise<void>
}

/** A relay for one test. */
export async function relayFor(t: TestContext, options?: RelayOptions): Promise<TestRelay> {
  const relay = await startRelay(options)
  t.after(() => relay.stop())
  return relay
}

/** A relay for the tests of a file. It may be used once they run. */
export function useRelay(options?: RelayOptions): TestRelay {
  return useStarted(() => startRelay(options))
}

/** A relay that is shared by the tests of a file. After each test, its platform's ledger and faults are cleared. */
export function useStarted<Relay extends TestRelay>(start: () => Promise<Relay>): Relay {
  let started: Relay | undefined
  const relay = (): Relay => {
    assert(started, 'the relay is started before the first test')
    return started
  }
  before(async () => {
    started = await start()
  })
  after(() => relay().stop())
  afterEach(() => {
    relay().simulator.clear()
    relay().simulator.clearFaults()
  })
  return new Proxy({} as Relay, { get: (_, name): unknown => Reflect.get(relay(), name) })
}

/** A parsed answer. */
export interface Reply {
  status: number
  headers: Headers
  body: { code: number, msg: string, data: unknown, error?: unknown }
  msg: string
  /** The fields of the data. */
  data: JsonObject
  /** The fields of the error, if there is one. */
  error: JsonObject
}

/** Starts a relay; resolves when the bot is online and the server listens. */
export async function startRelay(options: RelayOptions = {}): Promise<TestRelay> {
  const { config = {}, simulator: simulatorOptions, proxy = '', setup } = options
  const simulator = await Simulator.start({ anyTarget: true, ...simulatorOptions })
  const folder = await mkdtemp(join(tmpdir(), 'relay-'))
  const [uploadDir, dataDir] = [join(folder, 'uploads'), join(folder, 'data')]
  const logs: string[] = []

  const releaseTimers = holdAdapterTimers()
  const app = new Context()
  const target: Logger.Target = {
    levels: { base: Logger.DEBUG },
    // The log is one for all apps of the process, such as that of a page of another file which still asks.
    record({ name, type, content, meta }) {
      // A logger of no context has none.
      const ctx: unknown = Reflect.get(Object(meta), 'ctx')
      if (!(ctx instanceof Object) || Reflect.get(ctx, 'root') === app) logs.push(`${name} ${type} ${content}`)
    },
  }
  Logger.levels.base = Logger.SILENT
  Logger.targets.push(target)
  const forks = [
    app.plugin(HTTP),
    app.plugin(proxyAgent, { proxyAgent: proxy }),
    app.plugin(Server, { host: '127.0.0.1', port: 0 }),
    addForward(app, simulator.endpoint, { selfId: simulator.selfId, ...simulatorOptions?.token && { token: simulatorOptions.token } }),
  ]
  watchAnswers(app)
  setup?.(app)
  // The shortest possible settle time, so that tests end.
  const defaults = { apiKey, chatSettleTime: 0.001, uploadDir, dataDir }
  let fork = app.plugin(relay, Object.assign({}, defaults, config))
  await app.start()
  const { _http: server } = app.server
  const url = `http://127.0.0.1:${await listen(server)}`
  await until('the bot is online', () => app.bots.some(bot => bot.platform === 'onebot' && bot.status === Universal.Status.ONLINE))

  const request: TestRelay['request'] = async (path, init = {}) => {
    const response = await fetch(url + path, { ...init, headers: [['x-api-key', apiKey], ...new Headers(init.headers)] })
    watchRequest(path, init.body, response)
    assertConforming()
    return response
  }
  return {
    app,
    simulator,
    url,
    uploadDir,
    dataDir,
    logs,
    request,
    send: async (body, headers) => read(await request('/webhook', { method: 'POST', body: JSON.stringify(body), ...headers && { headers } })),
    unload() {
      fork.dispose()
    },
    async reload(next = config, after = 0) {
      fork.dispose()
      if (after > 0) await delay(after)
      fork = app.plugin(relay, Object.assign({}, defaults, next))
      await app.lifecycle.flush()
    },
    async update(next) {
      fork.update(Object.assign({}, defaults, next))
      await app.lifecycle.flush()
    },
    async stop() {
      server.closeAllConnections()
      for (const each of [fork, ...forks.reverse()]) each.dispose()
      await simulator.close()
      Logger.targets.splice(Logger.targets.indexOf(target), 1)
      await rm(folder, { recursive: true, maxRetries: 5 })
      releaseTimers()
      assertConforming()
    },
  }
}

/** Parses an answer, which must be an envelope. A failure says the same in its headers and in its `error`. */
export async function read(response: Response): Promise<Reply> {
  assertConforming()
  assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
  assert.match(response.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/)
  const text = await response.text()
  assert(text.endsWith('\n'), text)
  const body: unknown = JSON.parse(text)
  assert(isEnvelope(body))
  const { status, headers, ok } = response
  const { code, msg, data } = body
  const error = fieldsOf(body.error)
  assert.equal(code, ok ? 0 : status)
  assert.deepEqual([data === null, 'error' in body], [!ok, !ok], text)
  if (!ok) assert.deepEqual([typeof error.id, error.outcome ?? null, error.retry_after ?? null],
    ['string', headers.get('relay-outcome'), headers.get('retry-after') && Number(headers.get('retry-after'))], text)
  return { status, headers, body, msg, data: fieldsOf(data), error }
}

function isEnvelope(value: unknown): value is Reply['body'] {
  return typeof value === 'object' && value !== null && 'code' in value && typeof value.code === 'number'
    && 'msg' in value && typeof value.msg === 'string' && 'data' in value
}

/** Sends a request with this key instead of the tests' own. */
export async function askAs({ url }: Pick<TestRelay, 'url'>, key: string, method: string, path: string, body?: unknown): Promise<Reply> {
  return read(await fetch(url + path, { method, headers: { 'x-api-key': key }, ...body !== undefined && { body: JSON.stringify(body) } }))
}
