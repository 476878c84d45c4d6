import type { StoredMessage } from './messages'
import { parseId, parseInteger, parseText } from './parse'
import type { Platform } from './platform'
import { parseSeconds, parseSwitch } from './switches'
import type { Saying, Target } from './types'

/** An action of the page. Accepts the body and returns the answer, or an error in the body. */
export type PageAction = (platform: Platform, body: Record<string, unknown>) => object

/** The actions by their name: `POST /simulator/api/<name>`. */
export const pageActions: Readonly<Record<string, PageAction>> = {
  /**
   * `{ type, chat, user, text, reply }`: posts a message of a member; `reply` is the ID of the message that it quotes, if any. Answer:
   * `{ id }` of the message.
   */
  say(platform, body) {
    const saying = parseSaying(body, platform)
    return 'error' in saying ? saying : { id: platform.say(saying) }
  },
  /** `{ chat, user, message, emoji, on }`: adds a reaction of a member to a message in a group, or removes it. Answer: `{ on }`. */
  react(platform, body) {
    const { on } = body
    const member = parseMember(body, platform)
    if ('error' in member) return member
    const message = findMessage(body.message, { type: 'group', id: member.group }, platform)
    if (message === undefined) return { error: 'message must be the id of a message in this chat' }
    const emoji = parseId(body.emoji)
    if (emoji === null) return { error: 'emoji must be its number on QQ' }
    if (typeof on !== 'boolean') return { error: 'on must be true or false' }
    platform.react({ user: member.user, messageId: message.id, emoji, isAdded: on })
    return { on }
  },
  /**
   * `{ name, on, type, chat, seconds }`: sets a switch, for one chat or, without `type` and `chat`, for all. `seconds` is the length of a
   * mute. Answer: `{ on }`.
   */
  switch({ switches, world }, body) {
    const found = parseSwitch(body)
    if ('error' in found) return found
    const { on } = body
    if (typeof on !== 'boolean') return { error: 'on must be true or false' }
    if (found.target?.type === 'group' && !world.groups.has(found.target.id)) return { error: `there is no group ${found.target.id}` }
    const seconds = parseSeconds(found, body.seconds)
    if (typeof seconds === 'object') return seconds
    switches.turn(found, on, seconds)
    return { on }
  },
}

function parseSaying(body: Record<string, unknown>, platform: Platform): Saying | { error: string } {
  const text = parseText(body.text)
  if (text === null) return { error: 'text must not be empty' }
  const { type } = body
  if (type !== 'group' && type !== 'private') return { error: 'type must be group or private' }
  const chat = parseId(body.chat)
  if (chat === null) return { error: 'chat must be the id of a chat' }
  const quoted = body.reply === undefined ? undefined : findMessage(body.reply, { type, id: chat }, platform)
  if (body.reply !== undefined && quoted === undefined) return { error: 'reply must be the id of a message in this chat' }
  const reply = quoted && { replyTo: quoted.id }
  if (type === 'private') return { user: chat, text, ...reply }
  const member = parseMember(body, platform)
  if ('error' in member || !quoted) return 'error' in member ? member : { ...member, text }
  // In groups, QQ's apps mention the sender of what is quoted.
  return { ...member, ...reply, segments: [{ type: 'at', data: { qq: quoted.sender.id } }, { type: 'text', data: { text: ` ${text}` } }] }
}

/** A member of a group, and that group. */
type Member = Required<Pick<Saying, 'group' | 'user'>>

function parseMember({ chat, user: id }: Record<string, unknown>, { world }: Platform): Member | { error: string } {
  const [group, user] = [world.groups.get(parseId(chat) ?? ''), parseId(id)]
  if (group === undefined) return { error: `there is no group ${String(chat)}` }
  const isMember = user !== null && user !== world.self.id && group.members.has(user)
  return isMember ? { group: group.id, user } : { error: 'user must be a member of the group' }
}

function findMessage(id: unknown, { type, id: chat }: Target, { messages }: Platform): StoredMessage | undefined {
  const message = messages.find(parseInteger(id) ?? 0)
  return message?.target.type === type && message.target.id === chat && !message.isFile ? message : undefined
}
