import { anyPlatform } from './adapter'
import { discord } from './discord/account'
import type { PlatformSupport } from './koishi'
import { lark } from './lark/account'
import { oneBot } from './onebot/account'
import { satori } from './satori/account'
import { telegram } from './telegram'

/** The particulars of platforms. The first one that accepts a bot counts; the last one accepts every bot. */
export const platforms: readonly [PlatformSupport, ...PlatformSupport[]] = [oneBot, telegram, lark, satori, discord, anyPlatform]
