import { anyPlatform } from './adapter'
import type { PlatformSupport } from './koishi'

/** What is particular to platforms besides OneBot. The first one that owns a bot counts, and the last one owns every bot. */
export const platforms: readonly PlatformSupport[] = [
  anyPlatform,
]
