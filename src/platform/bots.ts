import { Universal, type Bot } from 'koishi'
import { RelayError } from '../errors'
import type { BotSelector, Target } from '../message/model'
import { writeTarget } from '../message/target'
import { isOneBot } from './bot-name'

/**
 * Picks the bot that sends: the one that was asked for, otherwise the OneBot bot, otherwise the first that is online.
 *
 * @throws RelayError `unsent` when no such bot is online
 */
export function chooseBot(bots: Iterable<Bot>, selector: BotSelector): Bot {
  const bot = prefer(bots, selector, isOnline)
  if (bot) return bot
  const wanted = selector.platform !== undefined || selector.selfId !== undefined
  throw new RelayError('unsent', wanted ? 'no bot with this platform and self_id is online: try again later' : undefined)
}

/**
 * Picks the bot that is to send in time: one that is online as `chooseBot` does, otherwise one that may come online.
 *
 * @throws RelayError `unsent` when there is no such bot at all
 */
export function chooseFutureBot(bots: Iterable<Bot>, selector: BotSelector): Bot {
  return prefer(bots, selector, isOnline) ?? prefer(bots, selector, () => true) ?? chooseBot(bots, selector)
}

/** Whether a bot can send now. */
export function isOnline(bot: Bot): boolean {
  return bot.status === Universal.Status.ONLINE
}

function prefer(bots: Iterable<Bot>, { platform, selfId }: BotSelector, isFit: (bot: Bot) => boolean): Bot | undefined {
  let first: Bot | undefined
  const wanted = platform !== undefined || selfId !== undefined
  for (const bot of bots) {
    if (!isFit(bot)) continue
    if (wanted ? !matches(bot, platform, selfId) : bot.hidden) continue
    if (isOneBot(bot)) return bot
    first ??= bot
  }
  return first
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

/** The name of the lane in which messages to this target wait for one another. */
export function laneOf(sid: string, target: Target): string {
  return `${sid}/${writeTarget(target)}`
}

function matches(bot: Bot, platform: string | undefined, selfId: string | undefined): boolean {
  return (platform === undefined || bot.platform === platform) && (selfId === undefined || bot.selfId === selfId)
}
