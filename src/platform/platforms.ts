import { anyPlatform } from './adapter'
import { discord } from './discord/account'
import type { PlatformSupport } from './koishi'
import { lark } from './lark/account'
import { oneBot } from './onebot/account'
import { satori } from './satori/account'
import { telegram } from './telegram'

/** What is particular to platforms. The first one that owns a bot counts, and the last one owns every bot. */
export const platforms: readonly [PlatformSupport, ...PlatformSupport[]] = [oneBot, telegram, lark, satori, discord, anyPlatform]
