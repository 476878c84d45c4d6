import { Logger, type Context } from 'koishi'
import Loader from '@koishijs/loader'
import { resolve } from 'node:path'

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

const logger = new Logger('bot')
const repository = resolve(__dirname, '../..')

/** How long everything may take to end after a signal, in milliseconds. */
const patience = 4_800

/**
 * Makes the environment what koishi.yml expects: relative folders are relative to where `npm start` was run, although npm
 * runs scripts in the package's own folder, and blank variables count as unset.
 */
function prepareEnvironment(environment: NodeJS.ProcessEnv): void {
  for (const [name, value] of Object.entries(environment)) {
    // koishi.yml tests variables for truth.
    if (/^(?:WEBHOOK|ONEBOT)_/.test(name) && !value?.trim()) Reflect.deleteProperty(environment, name)
  }
  const startedIn = environment.INIT_CWD ?? process.cwd()
  for (const [name, fallback] of [['DATA_DIR', 'data'], ['UPLOAD_DIR', 'uploads']] as const) {
    const value = environment[name]?.trim()
    if (value || startedIn !== repository) environment[name] = resolve(startedIn, value || fallback)
  }
  const port = environment.WEBHOOK_PORT
  if (port && !(/^\d+$/.test(port) && Number(port) > 0 && Number(port) < 65536)) {
    logger.warn('the variable WEBHOOK_PORT is malformed: the default is used')
  }
}

function endOnSignal(app: Context): void {
  let ending = false
  const end = (signal: NodeJS.Signals): void => {
    if (ending) return
    ending = true
    logger.info('%s: ending', signal)
    setTimeout(() => process.exit(1), patience)
    void app.parallel('exit', signal).finally(() => process.exit())
  }
  process.on('SIGINT', end)
  process.on('SIGTERM', end)
}

async function start(): Promise<void> {
  prepareEnvironment(process.env)
  const loader = new ReadOnlyLoader()
  await loader.init(resolve(repository, 'koishi.yml'))
  await loader.readConfig(true)
  const app = await loader.createApp()
  endOnSignal(app)
  await app.start()
}

process.on('unhandledRejection', reason => {
  logger.warn(reason)
})
start().catch((error: unknown) => {
  logger.error(error)
  process.exit(1)
})
