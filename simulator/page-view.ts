import { isFetchable } from './fetch'
import { isMedia } from './segments'
import type { StoredMessage } from './messages'
import { parseText } from './parse'
import type { Platform } from './platform'
import type { Person, Segment, Target } from './types'

// The number of messages per chat that a page shows when it opens.
const shownPerChat = 200

/**
 * A part of a message for the page. `src` is a path here or a link to this machine. Media elsewhere are `unfetched`, because the simulator
 * makes no traffic beyond this machine.
 */
export type Part
  = | { type: 'text', text: string }
    | { type: 'at', id: string, name: string }
    | { type: 'reply', id: number }
    | { type: 'image' | 'video' | 'record', src: string, name: string }
    | { type: 'unfetched', medium: 'image' | 'video' | 'record' | 'file', link: string, name: string }
    | { type: 'file', src: string | null, name: string, size: number | null }
    | { type: 'other', label: string }

/** A message for the page. `time` is in ms, `segments` are as in OneBot. */
export interface PageMessage {
  seq: number
  id: number | null
  time: number
  sender: { id: string, name: string, self: boolean }
  parts: Part[]
  segments: readonly Segment[]
  reactions: PageReaction[]
  /** Only set if nobody else in the chat sees the message. */
  isSwallowed?: true
}

/** A reaction to a message: QQ's ID of the emoji, and whose it is. */
export interface PageReaction { emoji: string, users: Person[] }

/** A chat for the page's list. */
export interface PageChat { type: Target['type'], id: string, name: string, members: Person[] }

/** `GET /simulator/api/state`. */
export function pageState(platform: Platform, endpoint: string): object {
  const { settings, world, connections } = platform
  const targets = new Map<string, Target>()
  const note = (target: Target): void => {
    targets.set(`${target.type}:${target.id}`, target)
  }
  for (const { id } of world.groups.values()) note({ type: 'group', id })
  for (const { id } of world.friends.values()) note({ type: 'private', id })
  for (const { target } of platform.messages.all()) note(target)
  return {
    selfId: world.self.id,
    selfName: world.self.name,
    profile: settings.profile,
    endpoint,
    connected: connections.size > 0,
    switches: platform.switches.list,
    refusal: platform.refusal,
    chats: [...targets.values()].map(target => ({
      ...pageChat(platform, target),
      messages: platform.messages.chat(target).messages.items.slice(-shownPerChat).map(message => pageMessage(platform, message)),
    })),
  }
}

export function pageChat({ world }: Platform, { type, id }: Target): PageChat {
  if (type === 'private') {
    const person = world.person(id)
    return { type, id, name: person.name, members: [person] }
  }
  const group = world.ensureGroup(id)
  // Without the bot: the people who can speak in this chat.
  return { type, id, name: group.name, members: [...group.members.values()].filter(member => member.id !== world.self.id).map(named) }
}

export function pageMessage(platform: Platform, message: StoredMessage): PageMessage {
  const { seq, id, isFile, isSwallowed, time, sender, segments } = message
  const parts = segments.map(segment => part(platform, segment))
  const reactions = pageReactions(platform, message)
  const shown = { ...named(sender), self: sender.self }
  return { seq, id: isFile ? null : id, time, sender: shown, parts, segments, reactions, ...(isSwallowed ? { isSwallowed } : {}) }
}

export function pageReactions({ world }: Platform, { reactions, target }: StoredMessage): PageReaction[] {
  return [...reactions].map(([emoji, users]) => ({ emoji, users: [...users].map(id => named(world.ensureMember(target.id, id))) }))
}

function named({ id, name, card }: Person): Person {
  return { id, name: card ?? name }
}

function part({ world, origin }: Platform, segment: Segment): Part {
  const { type, data } = segment
  if (isMedia(segment)) {
    const src = source(data, origin)
    const name = parseText(data.name) ?? parseText(data.file) ?? segment.type
    if (src !== null && !src.startsWith('/') && !isFetchable(src)) return { type: 'unfetched', medium: segment.type, link: src, name }
    if (segment.type === 'file') {
      const size = Number(data.file_size ?? NaN)
      return { type: 'file', src, name, size: Number.isFinite(size) ? size : null }
    }
    return src === null ? { type: 'other', label: `[${type}]` } : { type: segment.type, src, name }
  }
  switch (type) {
    case 'text':
      return { type, text: typeof data.text === 'string' ? data.text : '' }
    case 'at': {
      const id = String(data.qq)
      return { type, id, name: id === 'all' ? '全体成员' : world.person(id).name }
    }
    case 'reply':
      return { type, id: Number(data.id) }
    default:
      return { type: 'other', label: `[${type}]` }
  }
}

function source(data: Record<string, unknown>, origin: string): string | null {
  const link = parseText(data.url) ?? parseText(data.file) ?? ''
  // Relative, so that the link also works if the page was opened by another name of this machine.
  if (link.startsWith(`${origin}/simulator/media/`)) return link.slice(origin.length)
  return /^https?:\/\//i.test(link) ? link : null
}
