import OneBotBot from '@koishijs/plugin-adapter-onebot'
import type { Context, ForkScope } from 'koishi'
import { responseTimeout } from './adapter-timers'

export interface DialOptions {
  selfId?: string
  token?: string
  retryTimes?: number
  retryInterval?: number
  responseTimeout?: number
}

/** Adds a bot that dials this address. */
export function addForward(app: Context, endpoint: string, options: DialOptions = {}): ForkScope {
  return app.plugin<OneBotBot.Config>(OneBotBot, {
    protocol: 'ws', endpoint, selfId: '10000', proxyAgent: '', responseTimeout,
    retryTimes: 6, retryInterval: 500, retryLazy: 60_000, ...options,
  })
}
