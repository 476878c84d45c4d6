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

/** The language of a page. It decides between the names of a person or group. */
export type PageLanguage = 'en' | 'zh'

/** `GET /simulator/api/state`. */
export function pageState(platform: Platform, endpoint: string, language: PageLanguage): object {
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
    selfName: nameIn(language, world.self),
    profile: settings.profile,
    endpoint,
    connected: connections.size > 0,
    switches: platform.switches.list,
    refusal: platform.refusal,
    chats: [...targets.values()].map(target => ({
      ...pageChat(platform, target, language),
      messages: platform.messages.chat(target).messages.items.slice(-shownPerChat).map(message => pageMessage(platform, message, language)),
    })),
  }
}

export function pageChat({ world }: Platform, { type, id }: Target, language: PageLanguage): PageChat {
  if (type === 'private') {
    const person = named(language, world.person(id))
    return { type, id, name: person.name, members: [person] }
  }
  const group = world.ensureGroup(id)
  // Without the bot: the people who can speak in this chat.
  const members = [...group.members.values()].filter(member => member.id !== world.self.id)
  return { type, id, name: nameIn(language, group), members: members.map(member => named(language, member)) }
}

export function pageMessage(platform: Platform, message: StoredMessage, language: PageLanguage): PageMessage {
  const { seq, id, isFile, isSwallowed, time, sender, segments } = message
  const parts = segments.map(segment => part(platform, segment, language))
  const reactions = pageReactions(platform, message, language)
  const shown = { ...named(language, sender), self: sender.self }
  return { seq, id: isFile ? null : id, time, sender: shown, parts, segments, reactions, ...(isSwallowed ? { isSwallowed } : {}) }
}

export function pageReactions({ world }: Platform, { reactions, target }: StoredMessage, language: PageLanguage): PageReaction[] {
  const user = (id: string): Person => named(language, world.ensureMember(target.id, id))
  return [...reactions].map(([emoji, users]) => ({ emoji, users: [...users].map(user) }))
}

function nameIn(language: PageLanguage, { name, card, english }: Omit<Person, 'id'>): string {
  return (language === 'en' ? english : undefined) ?? card ?? name
}

function named(language: PageLanguage, person: Person): Person {
  return { id: person.id, name: nameIn(language, person) }
}

function part({ world, origin }: Platform, segment: Segment, language: PageLanguage): Part {
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
      return { type, id, name: nameIn(language, world.person(id)) }
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
