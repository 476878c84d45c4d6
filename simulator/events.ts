import { encodeCq } from './cqcode'
import type { StoredMessage } from './messages'

/** What an event says about where it comes from. */
export interface Voice { selfId: string, format: 'array' | 'string' }

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
export function heartbeat(selfId: string, time: number, interval: number): object {
  return {
    time: seconds(time),
    self_id: Number(selfId),
    post_type: 'meta_event',
    meta_event_type: 'heartbeat',
    status: { online: true, good: true },
    interval,
  }
}

/** A message as events, `get_msg` and the histories show it; times are whole seconds. */
export function messageBody(message: StoredMessage, { selfId, format }: Voice): Record<string, unknown> {
  const { id, chatSeq, sender, target, time } = message
  const raw = encodeCq(message.segments)
  const inGroup = target.type === 'group'
  return {
    self_id: Number(selfId),
    user_id: Number(sender.id),
    time: seconds(time),
    message_id: id,
    message_seq: chatSeq,
    real_id: id,
    message_type: target.type,
    sender: inGroup
      ? { user_id: Number(sender.id), nickname: sender.name, card: '', role: 'member' }
      : { user_id: Number(sender.id), nickname: sender.name, card: '' },
    raw_message: raw.trim(),
    font: 14,
    sub_type: inGroup ? 'normal' : 'friend',
    message: format === 'array' ? message.segments : raw,
    message_format: format,
    post_type: sender.self ? 'message_sent' : 'message',
    ...(inGroup ? { group_id: Number(target.id) } : {}),
    // The partner: without it nobody could tell where the bot's own private message went.
    ...(sender.self ? { target_id: Number(target.id) } : {}),
  }
}
