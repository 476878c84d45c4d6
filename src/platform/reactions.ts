import type { Bot, Context } from 'koishi'
import { unwrap } from '../lib/koishi'
import { fieldsOf, objectsIn, toText, type JsonObject } from '../lib/shape'
import { elementsText, Incoming, type Source } from './incoming'
import { wireOf } from './keeper/private-fields'
import { wireEvents, type Wire } from './keeper/wire'

/** A reaction to a message, added or removed; its source has the ID of that message. */
export interface Reaction extends Source {
  isAdded: boolean
  /** What the platform calls the emoji: the character itself, an ID, or a name. */
  emoji: readonly string[]
}

/** Koishi's events of reactions. The adapter of Discord has another word for the removed ones. */
const kinds: ReadonlyMap<unknown, boolean> = new Map([['reaction-added', true], ['reaction-removed', false], ['reaction-deleted', false]])

/** Hears of reactions until the context is disposed: from Koishi's events, and on OneBot from the wire (upstream/11). */
export function listenForReactions(ctx: Context, tell: (reaction: Reaction) => void): void {
  ctx.on('internal/session', session => {
    const { type, emoji, message } = fieldsOf(Reflect.get(unwrap(session), 'event'))
    const isAdded = kinds.get(type)
    const source = isAdded === undefined ? undefined : new Incoming(session, []).source
    const { id, name } = fieldsOf(emoji)
    const names = [toText(id), toText(name), elementsText(fieldsOf(message).elements)]
    if (isAdded !== undefined && source) tell({ ...source, isAdded, emoji: names })
  })
  const bots: readonly Bot[] = unwrap(ctx.bots)
  const onEvent = (wire: Wire, event: JsonObject): void => {
    const reaction = readNotice(event)
    // An older connection of the account does not count.
    if (reaction && bots.map(unwrap).some(bot => bot.selfId === reaction.bot.selfId && wireOf(bot) === wire)) tell(reaction)
  }
  wireEvents.on('event', onEvent)
  ctx.on('dispose', () => void wireEvents.off('event', onEvent))
}

/**
 * Reads the notice of NapCat and LuckyLilliaBot about a reaction in a group. Older versions have no `is_add` and report added ones only,
 * and no `user_id` for messages of others than the bot. Sources: NapNeko/NapCatQQ `packages/napcat-onebot/api/group.ts` and
 * `event/notice/OB11MsgEmojiLikeEvent.ts`; LLOneBot/LuckyLilliaBot `src/onebot11/event/notice/OB11MsgEmojiLikeEvent.ts`.
 */
function readNotice(event: JsonObject): Reaction | undefined {
  if (event.post_type !== 'notice' || event.notice_type !== 'group_msg_emoji_like') return
  const { self_id: self, group_id: group, user_id: user, message_id: message, likes, is_add: isAdded, time } = event
  const [selfId, userId] = [toText(self), toText(user)]
  if (!Number(userId) || userId === selfId) return
  return {
    bot: { platform: 'onebot', selfId }, userId, target: { kind: 'group', id: toText(group) }, messageId: toText(message), name: '',
    time: Number(time) * 1000, isAdded: isAdded !== false, emoji: objectsIn(likes).map(({ emoji_id: emoji }) => toText(emoji)),
  }
}
