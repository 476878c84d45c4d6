import { encodeCq } from './cqcode'
import type { StoredMessage } from './messages'
import type { Profile } from './profiles'
import type { Reacting } from './types'

/** What an event needs to know about the bot and the profile. */
export interface Voice { selfId: string, format: 'array' | 'string', tells: Profile['tells'] }

const seconds = (ms: number): number => Math.floor(ms / 1000)

/** Sent when a connection opens (OneBot 11, meta events). `time` in milliseconds since the epoch, as below. */
export function lifecycle(selfId: string, time: number): object {
  return {
    time: seconds(time),
    self_id: Number(selfId),
    post_type: 'meta_event',
    meta_event_type: 'lifecycle',
    sub_type: 'connect',
  }
}

/** Sent every `interval` ms. */
export function heartbeat(selfId: string, time: number, interval: number, online: boolean): object {
  return {
    time: seconds(time),
    self_id: Number(selfId),
    post_type: 'meta_event',
    meta_event_type: 'heartbeat',
    status: { online, good: true },
    interval,
  }
}

/** Sent once when the platform logs the account out. */
export function botOffline(selfId: string, time: number): object {
  return {
    time: seconds(time),
    self_id: Number(selfId),
    post_type: 'notice',
    notice_type: 'bot_offline',
    user_id: Number(selfId),
    tag: '下线通知',
    message: '你的账号已在另一台设备登录，本设备已下线。',
  }
}

/** A mute in a group. The user `0` means everybody. The duration is in seconds, -1 without an end, 0 to lift the mute. */
export interface Ban { group: string, user: string, operator: string, duration: number }

/** Sent when a user, or everybody, is muted in a group or unmuted. Not sent when a mute expires. */
export function groupBan(selfId: string, time: number, { group, user, operator, duration }: Ban): object {
  return {
    time: seconds(time),
    self_id: Number(selfId),
    post_type: 'notice',
    notice_type: 'group_ban',
    sub_type: duration === 0 ? 'lift_ban' : 'ban',
    group_id: Number(group),
    user_id: Number(user),
    operator_id: Number(operator),
    duration,
  }
}

/** Sent when somebody reacts to a message in a group, or no longer does. NapCat counts one each time. */
export function emojiLike(selfId: string, time: number, { user, messageId, emoji, isAdded = true }: Reacting, group: string): object {
  return {
    time: seconds(time),
    self_id: Number(selfId),
    post_type: 'notice',
    notice_type: 'group_msg_emoji_like',
    group_id: Number(group),
    user_id: Number(user),
    message_id: messageId,
    likes: [{ emoji_id: emoji, count: 1 }],
    is_add: isAdded,
  }
}

/** The body of a message in events, `get_msg` and the histories. Times are whole seconds. */
export function messageBody(message: StoredMessage, { selfId, format, tells }: Voice): Record<string, unknown> {
  const { id, chatSeq, sender, target, time, isSwallowed } = message
  const raw = encodeCq(message.segments)
  const inGroup = target.type === 'group'
  return {
    self_id: Number(selfId),
    user_id: Number(sender.id),
    time: seconds(time),
    message_id: id,
    // Most implementations use a hash of their own as the number.
    message_seq: tells.has('message_seq') ? chatSeq : id,
    real_id: id,
    // The server gave no number to a swallowed message, because it has not seen it.
    ...(tells.has('real_seq') ? { real_seq: isSwallowed ? '0' : String(chatSeq) } : {}),
    message_type: target.type,
    sender: inGroup
      ? { user_id: Number(sender.id), nickname: sender.name, card: sender.card ?? '', role: 'member' }
      : { user_id: Number(sender.id), nickname: sender.name, card: '' },
    raw_message: raw.trim(),
    font: 14,
    sub_type: inGroup ? 'normal' : 'friend',
    message: format === 'array' ? message.segments : raw,
    message_format: format,
    post_type: sender.self ? 'message_sent' : 'message',
    ...(inGroup ? { group_id: Number(target.id) } : {}),
    // The chat partner. Nothing else tells the target of the bot's own private message.
    ...(sender.self ? { target_id: Number(target.id) } : {}),
  }
}
