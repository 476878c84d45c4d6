import type { Child } from './child'
import type { Stage } from './stage'
import { numberOf, textOf } from './values'

/** The key of every relay of the benchmark. */
export const apiKey = 'a-key-for-the-benchmark'

/** A Koishi app that is connected to a platform of its own. */
export interface App {
  child: Child
  platform: Child
  /** Without a slash at its end. */
  url: string
  /** The folder of uploads, if the app has them. */
  uploads: string
  end(): Promise<void>
}

/** How an app is started. */
export interface AppOptions {
  /** File of the built plugin; by default that of the stage. */
  plugin?: string
  /** Settings of the relay. */
  config?: object
  /** The folder of uploads; by default a new one. */
  uploads?: string
  exposeGc?: boolean
  /** The response timeout of the adapter, in milliseconds; by default one minute, as in the adapter. */
  responseTimeout?: number
}

/** Starts the Koishi app with the relay. */
export function startRelay(stage: Stage, options: AppOptions = {}): Promise<App> {
  return startApp(stage, 'relay', options)
}

/** Starts the same app with the bare routes instead of the relay. */
export function startBare(stage: Stage, options: AppOptions = {}): Promise<App> {
  return startApp(stage, 'bare', options)
}

/** Starts a program of `apps/` that calls `serveBot`. */
export async function startApp(stage: Stage, program: string, { config, exposeGc = false, ...rest }: AppOptions): Promise<App> {
  const platform = await stage.start('platform')
  const child = await stage.start(program, { isRelay: program === 'relay', exposeGc })
  const uploads = rest.uploads ?? await stage.newFolder()
  const port = numberOf(await child.ask('start', {
    endpoint: textOf(await platform.ask('start'), 'endpoint'),
    responseTimeout: rest.responseTimeout ?? 60_000,
    plugin: rest.plugin ?? stage.plugin,
    config: { apiKey, uploadDir: uploads, dataDir: await stage.newFolder(), ...config },
  }), 'port')
  return {
    child,
    platform,
    url: `http://127.0.0.1:${port}`,
    uploads,
    async end() {
      await child.end()
      await platform.end()
    },
  }
}
