import type { Target } from '../../message/model'

/** A chat as Telegram names it. */
export interface Chat {
  /** A negative number, or the `@name` of a public group or channel; in a private chat the number of the user. */
  id: string
  /** The topic of a group that has topics. */
  topic?: number
}

const groupPattern = /^(-[1-9][0-9]{0,15}|@[a-z][a-z0-9_]{3,31})(?::([1-9][0-9]{0,9}))?$/i
const userPattern = /^[1-9][0-9]{0,15}$/

/**
 * Reads a target; `undefined` where there can be no such chat. Groups have negative numbers and users positive ones, so that neither kind
 * of target reaches a chat of the other. Source: https://core.telegram.org/bots/api#sendmessage (`chat_id`, `message_thread_id`)
 */
export function readChat({ kind, id }: Target): Chat | undefined {
  if (kind === 'private') return isUser(id) ? { id } : undefined
  const [, group, topic] = groupPattern.exec(id) ?? []
  if (group !== undefined) return { id: group, ...topic !== undefined && { topic: Number(topic) } }
}

export function isUser(id: string): boolean {
  return userPattern.test(id)
}

/** Reads the ID of a message: its number in its chat, with that chat in front or not. `undefined` where there can be no such message. */
export function readMessageId(text: string): { chat: string | undefined, number: number } | undefined {
  const [, chat, number] = /^(?:(\S+):)?([1-9][0-9]{0,9})$/.exec(text) ?? []
  if (number !== undefined) return { chat, number: Number(number) }
}
