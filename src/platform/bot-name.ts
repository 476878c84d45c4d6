import type { Bot } from 'koishi'

/** What a bot is known by. */
export type BotName = Pick<Bot, 'platform' | 'selfId'>

/** Reads a bot's `sid`: its platform, which has no colon, and its ID there. */
export function toBotName(sid: string): BotName {
  const colon = sid.indexOf(':')
  return { platform: sid.slice(0, colon), selfId: sid.slice(colon + 1) }
}

/** Whether a bot speaks OneBot 11. */
export function isOneBot({ platform }: BotName): boolean {
  return platform === 'onebot'
}
