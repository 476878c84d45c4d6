import { Logger } from 'koishi'
import Loader from '@koishijs/loader'
import { access, constants, readFile } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { codeOf } from '../src/errors'
import { isNumber, isObject, isString, objectOf } from '../src/lib/shape'
import { systemClock } from '../src/relay/clock'
import { filesIn, touch } from '../src/relay/store/file-store'
import { FolderLock } from '../src/relay/store/lock'
import { serveConsole } from './console'
import { endOnSignal } from './end'
import { findAddress, portIn, tryToListen, type Address } from './ports'
import { demandToken } from './token'

/**
 * Koishi's loader over a configuration that is only read: the usual one rewrites the file, and adds to the package.json of
 * the folder in which it runs.
 */
class ReadOnlyLoader extends Loader {
  override async init(filename?: string): Promise<void> {
    await super.init(filename)
    this.writable = false
  }

  override migrate(): Promise<void> {
    return Promise.resolve()
  }
}

/** What keeps the bot from starting, in words that tell what to do. */
class StartError extends Error {}

const logger = new Logger('bot')
const repository = resolve(__dirname, '../..')

/**
 * How long a connection may be idle, in milliseconds: longer than proxies keep theirs, up to two minutes. A proxy that sends a POST
 * just as the connection is closed answers 502, and may not repeat the POST.
 */
const keepAliveTimeout = 130_000
/** How long it is watched whether the lock of a process on another machine is renewed, in milliseconds, and how often. */
const otherMachineTime = 14_000
const lookInterval = 100

/**
 * Makes the environment what koishi.yml expects: relative folders are relative to where `npm start` was run, although npm
 * runs scripts in the package's own folder, and blank variables count as unset.
 *
 * @throws StartError when ONEBOT_ENDPOINT is no address: the adapter would try it for ever, and not say which variable it has it from
 */
function prepareEnvironment(environment: NodeJS.ProcessEnv): void {
  for (const [name, value] of Object.entries(environment)) {
    // koishi.yml takes these as they are, and tests them for truth.
    if (!/^(?:ONEBOT|SIMULATOR|WEBHOOK)_/.test(name)) continue
    if (value?.trim()) environment[name] = value.trim()
    else Reflect.deleteProperty(environment, name)
  }
  const startedIn = environment.INIT_CWD ?? process.cwd()
  for (const [name, fallback] of [['DATA_DIR', 'data'], ['UPLOAD_DIR', 'uploads']] as const) {
    const value = environment[name]?.trim()
    if (value || startedIn !== repository) environment[name] = resolve(startedIn, value || fallback)
    else Reflect.deleteProperty(environment, name)
  }
  const { ONEBOT_ENDPOINT: endpoint, ONEBOT_REVERSE_PATH: path } = environment
  // The adapter takes http for ws.
  if (endpoint && !(/^(?:ws|http)s?:\/\//i.test(endpoint) && URL.canParse(endpoint))) {
    throw new StartError('ONEBOT_ENDPOINT is not the address of a WebSocket: write it as ws://127.0.0.1:3001')
  }
  // As in WEBHOOK_PATH, the first slash may be missing.
  if (path) environment.ONEBOT_REVERSE_PATH = path.replace(/^\/?/, '/')
  if ((endpoint || path) && !environment.ONEBOT_SELF_ID) {
    const variable = endpoint ? 'ONEBOT_ENDPOINT' : 'ONEBOT_REVERSE_PATH'
    logger.error(`no platform is connected: beside ${variable}, set ONEBOT_SELF_ID to the account of the bot`)
  }
}

/**
 * @throws StartError for a file .env that cannot be read: Koishi would go on as if there were none (upstream/19), and the simulator take
 *   all messages
 */
async function checkFile(path: string): Promise<void> {
  const content = await readFile(path).catch(codeOf)
  if (content === 'ENOENT') return
  if (typeof content === 'string') {
    throw new StartError(`cannot read the file ${basename(path)} (${content}): let the user that runs the bot read it, or remove it`)
  }
  // Its byte order mark, as `>` of PowerShell 5.1 writes it.
  if (content.toString('latin1', 0, 2) === '\xff\xfe') throw new StartError(`the file ${basename(path)} is UTF-16: save it as UTF-8`)
}

/**
 * The token that a OneBot which dials has to give, `undefined` when none can dial.
 *
 * @throws StartError when there is none: whoever reaches the port could be the bot
 */
function tokenOf({ ONEBOT_ENDPOINT: endpoint, ONEBOT_REVERSE_PATH: path, ONEBOT_TOKEN: token }: NodeJS.ProcessEnv): string | undefined {
  if (!path || endpoint) return
  if (!token) throw new StartError('beside ONEBOT_REVERSE_PATH, set ONEBOT_TOKEN to the token that the OneBot implementation gives')
  return token
}

/**
 * Makes sure that the server can listen, before anything else is started and the API key of a bot that runs already is overwritten.
 * Koishi would go on without the server.
 *
 * @param server its part of koishi.yml
 * @throws StartError
 */
async function checkAddress(server: unknown): Promise<void> {
  if (!isAddress(server)) return
  const { host, port } = server
  warnOfPort('WEBHOOK_PORT', port)
  const reason = await tryToListen(host, port)
  if (reason === undefined) return
  const advice = reason === 'EADDRINUSE'
    ? 'another program has the port: end it, or set WEBHOOK_PORT, and DATA_DIR if it is a bot with the same data'
    : 'set WEBHOOK_HOST or WEBHOOK_PORT'
  throw new StartError(`cannot listen on ${host}:${port} (${reason}): ${advice}`)
}

/** @param port the one that koishi.yml takes */
function warnOfPort(variable: string, port: unknown): void {
  const value = process.env[variable]
  if (value && Number(value) !== port) logger.warn('the variable %s is malformed: the default is used', variable)
}

const isAddress = objectOf<Address>({ host: isString, port: isNumber })

/** The variables of the bot itself, with their defaults; that of the token is secret. As in docs/settings.md. */
const ownVariables = {
  WEBHOOK_HOST: '0.0.0.0', WEBHOOK_PORT: '8081', SIMULATOR_PORT: '8090', CONSOLE_HOST: '127.0.0.1', CONSOLE_PORT: '5140',
  ONEBOT_ENDPOINT: '', ONEBOT_REVERSE_PATH: '', ONEBOT_SELF_ID: '', ONEBOT_TOKEN: '',
}

/** One line for the log: what differs from its default in the bot itself. The plugin tells of its own settings. */
function describeOwn(environment: NodeJS.ProcessEnv): string {
  const parts = Object.entries(ownVariables).flatMap(([name, fallback]) => {
    const value = environment[name]?.trim() || fallback
    const isMalformed = name.endsWith('_PORT') && !(Number(value) > 0 && Number(value) < 65_536)
    if (value === fallback || isMalformed) return []
    // The address of a server may hold its token.
    const shown = name === 'ONEBOT_ENDPOINT' && URL.canParse(value) ? `${new URL(value).protocol}//${new URL(value).host}` : value
    return name === 'ONEBOT_TOKEN' ? name : `${name} = ${JSON.stringify(shown)}`
  })
  return `settings of the bot: ${parts.length > 0 ? `${parts.join(', ')}; all others have their defaults` : 'all have their defaults'}`
}

/**
 * Makes sure that no other process works the data folder, which is made where it is missing, before the key of that process is overwritten.
 * The relay of a bot that was started twice would stand by.
 *
 * @throws StartError
 */
async function checkDataFolder(folder: string): Promise<void> {
  const lock = new FolderLock(folder, systemClock, () => touch(filesIn(folder).copy))
  const end = performance.now() + otherMachineTime
  try {
    while (!lock.take()) {
      if (performance.now() > end || lock.isHolderAlive) {
        throw new StartError(`${(lock.holder ?? 'another process').toString()} works the data folder ${folder}: end it, or set DATA_DIR to another folder`)
      }
      await delay(lookInterval)
    }
  } catch (error) {
    if (error instanceof StartError) throw error
    throw new StartError(`cannot write to the data folder ${folder} (${codeOf(error)}): set DATA_DIR to a folder that can be written and has space`)
  }
  lock.release()
}

/** Says that the upload folder cannot be written to, which would be seen at the first file only. It need not be there yet. */
async function checkUploadFolder(folder: string): Promise<void> {
  const reason = await access(folder, constants.W_OK).then(() => undefined, codeOf)
  if (reason === undefined || reason === 'ENOENT') return
  logger.error('%s', `cannot write to the upload folder ${folder} (${reason}): no file can be sent; set UPLOAD_DIR to a folder that can be written and has space`)
}

async function start(): Promise<void> {
  const [target] = Logger.targets
  if (target) target.showTime = 'yyyy-MM-dd hh:mm:ss'
  const loader = new ReadOnlyLoader()
  await loader.init(resolve(repository, 'koishi.yml'))
  await Promise.all(loader.envFiles.map(checkFile))
  // Reads these files, too.
  await loader.readConfig(true)
  prepareEnvironment(process.env)
  await checkAddress(loader.interpolate(loader.config.plugins?.server))
  const simulator: unknown = loader.interpolate(loader.config.plugins?.['./dist/simulator/plugin'])
  if (isObject(simulator)) warnOfPort('SIMULATOR_PORT', simulator.port)
  const token = tokenOf(process.env)
  logger.info('%s', describeOwn(process.env))
  await checkDataFolder(process.env.DATA_DIR ?? resolve(repository, 'data'))
  await checkUploadFolder(process.env.UPLOAD_DIR ?? resolve(repository, 'uploads'))
  const app = await loader.createApp()
  Object.assign(app.server._http, { keepAliveTimeout, headersTimeout: keepAliveTimeout + 1_000 })
  if (token !== undefined) demandToken(app.server._http, token, logger)
  endOnSignal(app)
  await app.start()
  const { CONSOLE_HOST: host } = process.env
  const address = await findAddress({ host: host?.trim() || '127.0.0.1', port: portIn(process.env, 'CONSOLE_PORT', 5140) })
  if (address) serveConsole(app, address, resolve(repository, 'dist'))
}

process.on('unhandledRejection', reason => {
  logger.warn(reason)
})
start().catch((error: unknown) => {
  if (error instanceof StartError) logger.error('%s', error.message)
  else logger.error(error)
  process.exit(1)
})
