// What `relay demo` starts: a bot with the relay and the simulator, in a folder of its own, which only this machine can reach. It is
// bundled for the package, and finds Koishi with its server, and its console, where they are installed.
import Server from '@koishijs/plugin-server'
import { Context, HTTP, Universal } from 'koishi'
import { randomUUID } from 'node:crypto'
import { join, resolve } from 'node:path'
import { connectTo, startSimulator } from '../simulator/plugin'
import * as relay from '../src'
import { endOnSignal } from './end'
import { findAddress, portIn, tryToListen } from './ports'

/** Where it listens: only this machine reaches this address. */
const host = '127.0.0.1'

/** What was started. */
export interface Demo {
  /** The address of the relay, and the key for it. */
  url: string
  key: string
  /** The folder of all that it keeps. */
  folder: string
  /** The page with the chats of the simulator, and that of the relay if Koishi's console is installed. */
  chats: string
  page: string | undefined
}

/** Why it cannot start. */
export class DemoError extends Error {
  constructor(readonly port: number, readonly code: string) {
    super(`cannot listen on port ${port} (${code})`)
  }
}

/**
 * Starts a bot, which ends with the process.
 *
 * @param environment of which `WEBHOOK_PORT`, `SIMULATOR_PORT` and `CONSOLE_PORT` count
 * @param language that of the relay's log, as in its settings
 * @throws DemoError if the port of the relay cannot be listened on; simulator and console take the next one that is free
 */
export async function startDemo(environment: NodeJS.ProcessEnv, language: relay.Config['language']): Promise<Demo> {
  const port = portIn(environment, 'WEBHOOK_PORT', 8081)
  const reason = await tryToListen(host, port)
  if (reason !== undefined) throw new DemoError(port, reason)
  const [folder, key] = [resolve('message-relay-demo'), randomUUID()]
  const app = new Context()
  app.plugin(HTTP)
  app.plugin(Server, { host, port })
  app.plugin(relay, { apiKey: key, language, dataDir: join(folder, 'data'), uploadDir: join(folder, 'uploads') })
  const simulator = await startSimulator({ port: portIn(environment, 'SIMULATOR_PORT', 8090), selfId: '10000' })
  const isOnline = new Promise<void>(resolve => void app.on('bot-status-updated', ({ status }) => {
    if (status === Universal.Status.ONLINE) resolve()
  }))
  connectTo(app, simulator)
  endOnSignal(app)
  await app.start()
  await isOnline
  const page = await addConsole(app, portIn(environment, 'CONSOLE_PORT', 5140))
  return { url: `http://${host}:${port}`, key, folder, chats: simulator.pageUrl, page }
}

/** Serves the page of the relay, if Koishi's console is installed and has a port. @returns its address */
async function addConsole(app: Context, port: number): Promise<string | undefined> {
  const found = await import('./console').catch(() => undefined)
  const address = found && await findAddress({ host, port })
  if (!address) return
  found.serveConsole(app, address, resolve(__dirname, '../dist'))
  return `http://${host}:${address.port}/message-relay`
}
