import { Universal, type Bot } from 'koishi'
import { RelayError } from '../errors'
import type { BotSelector, Target } from '../message/model'
import { isOneBot } from './onebot/carrier'

/**
 * Picks the bot that sends: the one that was asked for, otherwise the OneBot bot, otherwise the first that is online.
 *
 * @throws RelayError `unsent` when no such bot is online
 */
export function chooseBot(bots: Iterable<Bot>, { platform, selfId }: BotSelector): Bot {
  let first: Bot | undefined
  const wanted = platform !== undefined || selfId !== undefined
  for (const bot of bots) {
    if (bot.status !== Universal.Status.ONLINE) continue
    if (wanted ? !matches(bot, platform, selfId) : bot.hidden) continue
    if (isOneBot(bot)) return bot
    first ??= bot
  }
  if (first) return first
  throw new RelayError('unsent', wanted ? 'no bot with this platform and self_id is online: try again later' : undefined)
}

/**
 * Checks that an ID can exist on the bot's platform, as far as that is known here (contract, "HTTP").
 *
 * @throws RelayError `bad-request`
 */
export function checkTarget(bot: Bot, target: Target): void {
  if (isOneBot(bot) && !/^[1-9][0-9]{0,19}$/.test(target.id)) {
    throw new RelayError('bad-request', `${target.kind === 'group' ? 'group_id' : 'user_id'} must be a number, as OneBot has it`)
  }
}

function matches(bot: Bot, platform: string | undefined, selfId: string | undefined): boolean {
  return (platform === undefined || bot.platform === platform) && (selfId === undefined || bot.selfId === selfId)
}
