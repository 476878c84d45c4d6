import { anyPlatform } from './adapter'
import { discord } from './discord/account'
import type { PlatformSupport } from './koishi'
import { lark } from './lark/account'
import { satori } from './satori/account'
import { telegram } from './telegram'

/** What is particular to platforms besides OneBot. The first one that owns a bot counts, and the last one owns every bot. */
export const platforms: readonly PlatformSupport[] = [telegram, lark, satori, discord, anyPlatform]
