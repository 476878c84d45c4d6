import { Universal, type Bot } from 'koishi'
import type { Target } from '../../message/model'
import type { JsonObject } from '../../message/parse'
import type { Finding } from '../../relay/attempts'
import type { LoadedItem } from '../../relay/media'
import { SendError } from '../port'
import { classifyThrown } from '../failure'
import { clockTolerance } from './accounts'
import { contentOfItems, isUpload, type Content } from './content'
import { readHistory } from './records'
import { requestOf, toNumber, type Request } from './request'
import type { Sightings } from './sightings'

/**
 * How many messages are asked for: usually more than are said in a chat while an answer is waited for, and not a burden; where
 * that does not reach back far enough, once more for many.
 */
const counts = [50, 500]

/**
 * Asks once whether a message of ours with these items is in a chat: first what the platform reported by itself, then its
 * history. A message that is found is accounted for, so that an equal one is not found in its place.
 *
 * @param since when its first call was made, in milliseconds since the epoch, by the local clock
 * @returns `no-history` also when the history does not reach back to `since`: what it does not show may be further up
 * @throws SendError when the question was not answered: `unsent` without a connection, `unanswered` when it was lost, when
 *   the adapter's time was up, or when the platform failed to answer it. It says nothing about the message.
 */
export function lookUp(
  bot: Bot, target: Target, items: readonly LoadedItem[], since: number, sightings: Sightings,
): Promise<Finding> {
  return lookUpContent(bot, target, contentOfItems(items), since, sightings)
}

/**
 * The same for what other plugins made of the items: the content of the segments that were sent.
 *
 * @throws SendError
 */
export async function lookUpContent(bot: Bot, target: Target, content: Content, since: number, sightings: Sightings): Promise<Finding> {
  const found = (id: string): Finding => ({ kind: 'found', messageIds: isUpload(content) ? [] : [id] })
  const seen = sightings.claim(bot, target, content, since)
  if (seen !== undefined) return found(seen)
  const request = requestOf(bot)
  if (!request) throw new SendError('unsent')

  const isGroup = target.kind === 'group'
  for (const count of counts) {
    const answer = await ask(bot, request, isGroup ? 'get_group_msg_history' : 'get_friend_msg_history', {
      [isGroup ? 'group_id' : 'user_id']: toNumber(target.id),
      count,
      // NapCat: spare it the links of all pictures and files and the insides of forwarded messages. The others ignore these.
      disable_get_url: true,
      parse_mult_msg: false,
    })
    const page = readHistory(answer, bot.selfId, since - clockTolerance)
    // The report may have come while the history was asked.
    const id = sightings.claim(bot, target, content, since) ?? (page && sightings.claimIn(bot, target, page.own, content, since))
    if (id !== undefined) return found(id)
    if (!page) break
    if (page.isConclusive) return { kind: 'absent' }
  }
  return { kind: 'no-history' }
}

/** The adapter does not reject the calls under way when a connection closes (OneBot guide, "Connections"); this does. */
async function ask(bot: Bot, request: Request, action: string, params: JsonObject): Promise<unknown> {
  let unwatch: (() => void) | undefined
  try {
    const lost = new Promise<never>((_resolve, reject) => {
      unwatch = bot.ctx.on('bot-status-updated', () => {
        if (bot.status !== Universal.Status.ONLINE) reject(new SendError('unanswered', 'the connection was lost'))
      })
    })
    return await Promise.race([request(action, params), lost])
  } catch (error) {
    const failure = classifyThrown(error)
    // The general rule takes an error without a reason for a refusal, but nobody refuses to look.
    throw failure.outcome === 'refused' ? new SendError('unanswered', undefined, { cause: error }) : failure
  } finally {
    unwatch?.()
  }
}
