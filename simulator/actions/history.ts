import { badParameter, executionError } from '../answers'
import { parseInteger } from '../parse'
import type { Platform } from '../platform'
import type { Target } from '../types'
import type { Action } from './action'
import { requireId } from './targets'

const defaultCount = 20

/** Single messages. */
export const messageActions: Readonly<Record<string, Action>> = {
  get_msg: ({ platform, call }) => platform.body(requireMessage(platform, call.params)),
  delete_msg: ({ platform, call }) => {
    platform.recall(requireMessage(platform, call.params))
    return null
  },
}

/** What was said in a chat by both sides, oldest first. Data: `{ messages }`. */
export const historyActions: Readonly<Record<string, Action>> = {
  get_group_msg_history: ({ platform, call }) => (
    history(platform, { type: 'group', id: requireId(platform, call.params, 'group_id') }, call.params)
  ),
  get_friend_msg_history: ({ platform, call }) => (
    history(platform, { type: 'private', id: requireId(platform, call.params, 'user_id') }, call.params)
  ),
}

function history(platform: Platform, target: Target, params: Record<string, unknown>): object {
  const from = parseInteger(params.message_seq)
  const count = parseInteger(params.count) ?? defaultCount
  if (count < 1) throw badParameter(platform.profile, 'count must be positive')
  return { messages: platform.messages.history(target, from, count).map(message => platform.body(message)) }
}

function requireMessage(platform: Platform, params: Record<string, unknown>) {
  const id = parseInteger(params.message_id)
  if (id === null) throw badParameter(platform.profile, 'message_id must be a number')
  const message = platform.messages.find(id)
  if (message === undefined) throw executionError(platform.profile, '消息不存在', 'MSG_NOT_FOUND')
  return message
}
