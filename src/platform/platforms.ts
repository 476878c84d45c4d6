import type { Context } from 'koishi'
import type { Log } from '../lib/log'
import type { PlatformSupport } from './account'
import { discord } from './discord/account'
import { restartStuck } from './keeper/restarts'
import { lark } from './lark/account'
import { oneBot } from './onebot/account'
import { anyPlatform } from './other/account'
import type { Presence } from './presence'
import { satori } from './satori/account'
import { telegram } from './telegram/account'

/** The particulars of platforms. The first one that accepts a bot counts; the last one accepts every bot. */
export const platforms: readonly [PlatformSupport, ...PlatformSupport[]] = [oneBot, telegram, lark, satori, discord, anyPlatform]

/** Looks after the bots of all platforms until the context is disposed. */
export function startPlatforms(ctx: Context, presence: Presence, logger: Log): void {
  for (const platform of platforms) platform.start?.(ctx, presence, logger)
  // Not OneBot, which has a supervisor of its own, and not the QQ adapter: once stopped, its version 4.11.0 never renews its token again.
  restartStuck(ctx, logger, bot => ['onebot', 'qq'].includes(bot.adapterName))
}
