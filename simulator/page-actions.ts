import { parseId, parseText } from './parse'
import type { Platform } from './platform'
import { parseSeconds, parseSwitch } from './switches'
import type { Saying } from './types'

/** An action of the page. Accepts the body and returns the answer, or an error in the body. */
export type PageAction = (platform: Platform, body: Record<string, unknown>) => object

/** The actions by their name: `POST /simulator/api/<name>`. */
export const pageActions: Readonly<Record<string, PageAction>> = {
  /** `{ type, chat, user, text }`: posts a message of a member. Answer: `{ id }` of the message. */
  say(platform, body) {
    const saying = parseSaying(body, platform)
    return 'error' in saying ? saying : { id: platform.say(saying) }
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

function parseSaying(body: Record<string, unknown>, { world }: Platform): Saying | { error: string } {
  const text = parseText(body.text)
  if (text === null) return { error: 'text must not be empty' }
  const chat = parseId(body.chat)
  if (chat === null) return { error: 'chat must be the id of a chat' }
  switch (body.type) {
    case 'private':
      return { user: chat, text }
    case 'group': {
      const user = parseId(body.user)
      const group = world.groups.get(chat)
      if (group === undefined) return { error: `there is no group ${chat}` }
      if (user === null || user === world.self.id || !group.members.has(user)) return { error: 'user must be a member of the group' }
      return { group: chat, user, text }
    }
    default:
      return { error: 'type must be group or private' }
  }
}
