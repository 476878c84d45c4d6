import OneBotBot from '@koishijs/plugin-adapter-onebot'
import { Schema, type Context } from 'koishi'
import { Simulator } from './simulator'

export const name = 'onebot-simulator'

/** The adapter dials with `http`. */
export const inject = ['http']

/** Options of the plugin. */
export interface Config {
  /** Port of the simulator on 127.0.0.1. If it is in use, the simulator chooses a free one. */
  port: number
  /** Account of the bot. */
  selfId: string
  /** How long the adapter waits for an answer, in milliseconds. */
  responseTimeout: number
}

export const Config: Schema<Partial<Config> | null | undefined, Config> = Schema.object({
  port: Schema.natural().max(65535).default(8090),
  selfId: Schema.string().pattern(/^[1-9]\d*$/).default('10000'),
  responseTimeout: Schema.natural().role('time').default(60_000),
})

/** Starts a simulator and connects a bot to it through the real adapter. */
export function apply(ctx: Context, config: Config): void {
  const logger = ctx.logger(name)
  let simulator: Simulator | null = null
  let disposed = false

  ctx.on('ready', async () => {
    const started = await startSimulator(config)
    // The plugin was unloaded during the start.
    if (disposed) {
      await started.close()
      return
    }
    simulator = started
    if (config.port !== 0 && started.port !== config.port) logger.warn('port %d is taken: the simulator takes %d; set SIMULATOR_PORT to choose', config.port, started.port)
    logger.warn(announcement(started))
    connectTo(ctx, started, config.responseTimeout)
  })

  // Not on "exit": then the relay still sends its last messages, and the simulator ends with the process.
  ctx.on('dispose', () => {
    disposed = true
    void simulator?.close()
  })
}

/** Connects a bot to a simulator through the real adapter. @param responseTimeout how long that waits for an answer, in milliseconds */
export function connectTo(ctx: Context, { endpoint, selfId }: Simulator, responseTimeout = 60_000): void {
  ctx.plugin<OneBotBot.Config>(OneBotBot, {
    protocol: 'ws', endpoint, selfId, proxyAgent: '', responseTimeout, retryTimes: 6, retryInterval: 5_000, retryLazy: 60_000,
  })
}

/** Starts a simulator on this port, or on a free one if it is taken. */
export async function startSimulator({ port, selfId }: Pick<Config, 'port' | 'selfId'>): Promise<Simulator> {
  try {
    return await Simulator.start({ port, selfId })
  } catch (error) {
    if (port === 0 || !(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error
    return Simulator.start({ selfId })
  }
}

function announcement({ pageUrl }: Simulator): string {
  const line = '='.repeat(78)
  return [
    line,
    'SIMULATOR: no real chat platform is connected. Messages go nowhere but to this page:',
    '当前为模拟平台，未连接真实聊天平台。消息只会出现在此页面：',
    '',
    `    ${pageUrl}`,
    '',
    'To connect to a real one, set ONEBOT_ENDPOINT (such as ws://127.0.0.1:3001).',
    '如需连接真实平台，请设置环境变量 ONEBOT_ENDPOINT（例如 ws://127.0.0.1:3001）。',
    line,
  ].join('\n')
}
