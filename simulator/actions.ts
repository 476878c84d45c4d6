import { badParameter, executionError, platformFailure, unknownAction } from './answers'
import { isFetchable } from './fetch'
import { inTurn } from './messages'
import { parseId, parseInteger, parseText } from './parse'
import type { Platform } from './platform'
import { isMedia, parseMessage } from './segments'
import type { Call, Person, Target } from './types'
import type { Group } from './world'

/**
 * The context of an action: the platform, the call, its approximate size in bytes, and whether its message is swallowed (visible to
 * nobody).
 */
interface ActionContext { platform: Platform, call: Call, weight: number, isSwallowed: boolean }

/**
 * Executes a call and returns the `data` of the answer, or a promise for it if bytes have to be read first.
 * @throws ActionFailure
 */
type Action = (context: ActionContext) => unknown

/** Builds the function that executes the calls to a platform, from the profile and the options. */
export function actionsOf({ profile, settings }: Platform): Action {
  const actions = new Map(Object.entries({
    ...infoActions, ...messageActions, ...(settings.history ? historyActions : {}), ...sendActions, ...uploadActions,
  }))
  for (const absent of profile.absentActions) actions.delete(absent)
  return context => {
    const action = actions.get(context.call.action)
    if (action === undefined) throw unknownAction(profile, context.call.action)
    return action(context)
  }
}

/** The bot's account, friends and groups. Data as in OneBot 11. */
const infoActions: Readonly<Record<string, Action>> = {
  get_login_info: ({ platform: { world } }) => ({ user_id: Number(world.self.id), nickname: world.self.name }),
  get_status: ({ platform: { isOnline } }) => ({ online: isOnline, good: true, stat: {} }),
  get_version_info: ({ platform: { profile } }) => ({
    app_name: profile.appName,
    app_version: profile.appVersion,
    protocol_version: 'v11',
  }),
  can_send_image: () => ({ yes: true }),
  can_send_record: () => ({ yes: true }),
  get_group_list: ({ platform }) => (
    [...platform.world.groups.values()].filter(group => group.hasBot).map(group => groupInfo(platform, group))
  ),
  get_friend_list: ({ platform: { world } }) => [...world.friends.values()].map(friend => ({ ...stranger(friend), remark: '' })),
  get_group_info: ({ platform, call }) => groupInfo(platform, requireGroup(platform, call.params)),
  get_group_member_list: ({ platform, call }) => {
    const group = requireGroup(platform, call.params)
    return [...group.members.values()].map(person => memberInfo(platform, group, person))
  },
  get_group_member_info: ({ platform, call }) => {
    const group = requireGroup(platform, call.params)
    const person = group.members.get(requireId(platform, call.params, 'user_id'))
    if (person === undefined) throw executionError(platform.profile, '群成员不存在', 'MEMBER_NOT_FOUND')
    return memberInfo(platform, group, person)
  },
  get_stranger_info: ({ platform, call }) => stranger(platform.world.person(requireId(platform, call.params, 'user_id'))),
}

function requireGroup(platform: Platform, params: Record<string, unknown>): Group {
  const group = platform.world.groups.get(requireId(platform, params, 'group_id'))
  if (group?.hasBot !== true) throw executionError(platform.profile, '群聊不存在', 'GROUP_NOT_FOUND')
  return group
}

function groupInfo({ profile, switches }: Platform, { id, name, members }: Group): object {
  const info = { group_id: Number(id), group_name: name, member_count: members.size, max_member_count: 200 }
  const isMuted = switches.isOn('allMuted', { type: 'group', id })
  // The value that QQ uses for a mute without an end.
  if (profile.tells.has('all-muted-until')) return { ...info, shut_up_all_timestamp: isMuted ? 2 ** 32 - 1 : 0 }
  return profile.tells.has('all-muted') ? { ...info, group_all_shut: isMuted ? -1 : 0 } : info
}

function stranger({ id, name }: Person): object {
  return { user_id: Number(id), nickname: name, sex: 'unknown', age: 0 }
}

function memberInfo({ profile, switches, world }: Platform, { id, role }: Group, person: Person): object {
  const isSelf = person.id === world.self.id
  const info = { group_id: Number(id), ...stranger(person), card: person.card ?? '', role: isSelf ? role : 'member' }
  const until = isSelf ? switches.until('muted', { type: 'group', id }) : 0
  return profile.tells.has('mute') ? { ...info, shut_up_timestamp: Math.ceil(until / 1000) } : info
}

const defaultCount = 20

/** Single messages. */
const messageActions: Readonly<Record<string, Action>> = {
  get_msg: ({ platform, call }) => platform.body(requireMessage(platform, call.params)),
  delete_msg: ({ platform, call }) => {
    platform.recall(requireMessage(platform, call.params))
    return null
  },
}

/** The messages of both sides of a chat, oldest first. Data: `{ messages }`. */
const historyActions: Readonly<Record<string, Action>> = {
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

/** The send actions. Data: `{ message_id }`. */
const sendActions: Readonly<Record<string, Action>> = {
  send_group_msg: context => send(context, groupTarget(context.platform, context.call.params)),
  send_private_msg: context => send(context, privateTarget(context.platform, context.call.params)),
  send_msg: context => {
    const { platform, call: { params } } = context
    const type = params.message_type ?? (params.group_id === undefined ? 'private' : 'group')
    if (type !== 'group' && type !== 'private') throw badParameter(platform.profile, 'message_type must be group or private')
    return send(context, type === 'group' ? groupTarget(platform, params) : privateTarget(platform, params))
  },
}

function send({ platform, call: { action, params }, weight, isSwallowed }: ActionContext, target: Target): unknown {
  const segments = parseMessage(platform.profile, params.message, params.auto_escape)
  const media = segments.filter(isMedia)
  const chat = platform.messages.chat(target)
  const delivery = { target, kind: 'message' as const, action, segments, weight, isSwallowed }
  if (media.length === 0 && chat.tail === null) return { message_id: platform.deliver({ ...delivery, media: [] }).id }
  // Reading starts at once, so that other chats need not wait. The delivery waits for its turn.
  const opening = Promise.all(media.map(({ type, data }) => (
    platform.media.open(parseText(data.file) ?? '', type, parseText(data.name))
  )))
  opening.catch(() => undefined)
  return inTurn(chat, async () => ({ message_id: platform.deliver({ ...delivery, media: await opening }).id }))
}

/** The file actions. */
const uploadActions: Readonly<Record<string, Action>> = {
  upload_group_file: context => upload(context, groupTarget(context.platform, context.call.params)),
  upload_private_file: context => upload(context, privateTarget(context.platform, context.call.params)),
  download_file: context => download(context),
}

function upload({ platform, call: { action, params }, weight, isSwallowed }: ActionContext, target: Target): Promise<unknown> {
  const { profile } = platform
  const file = parseText(params.file)
  if (file === null) throw badParameter(profile, 'file must be given')
  const name = parseText(params.name)
  if (name === null && (profile.uploadName.required || params.name !== undefined)) {
    throw badParameter(profile, 'name must be given')
  }
  if (name !== null && !profile.uploadName.slashes && /[/\\]/.test(name)) throw badParameter(profile, 'name must not contain / or \\')
  const opening = platform.media.open(file, 'upload', name)
  opening.catch(() => undefined)
  return inTurn(platform.messages.chat(target), async () => {
    const media = [await opening]
    platform.deliver({ target, kind: 'file', action, segments: [], media, weight, isSwallowed })
    return profile.uploadData === 'null' ? null : { file_id: `/${media[0]?.sha256?.slice(0, 32) ?? name ?? ''}` }
  })
}

/** Stores a file on the platform's disk. Data: `{ file }`, its path. */
async function download({ platform, call: { params } }: ActionContext): Promise<unknown> {
  const { profile, media } = platform
  const url = parseText(params.url)
  const base64 = parseText(params.base64)
  if (url !== null && !/^https?:\/\//i.test(url)) throw executionError(profile, `Failed to download ${url.slice(0, 200)}`)
  if (url !== null && !isFetchable(url)) throw executionError(profile, 'the simulator fetches only from this machine')
  const source = url ?? (base64 === null ? null : `base64://${base64.replace(/^base64:\/\//, '')}`)
  if (source === null) throw badParameter(profile, 'url must be given')
  return { file: await media.download(source, parseText(params.name)) }
}

/** Reads a required ID from the parameters. */
function requireId({ profile }: Platform, params: Record<string, unknown>, key: 'group_id' | 'user_id'): string {
  const id = parseId(params[key])
  if (id === null) throw badParameter(profile, `${key} must be a number`)
  return id
}

/** The target group of a send. It must exist, contain the bot and let it speak. */
function groupTarget(platform: Platform, params: Record<string, unknown>): Target {
  const { profile, switches, world } = platform
  const id = requireId(platform, params, 'group_id')
  const target: Target = { type: 'group', id }
  const group = switches.isOn('anyTarget', null) ? world.ensureGroup(id) : world.groups.get(id)
  if (group?.hasBot !== true) throw platformFailure(profile, 'not-member')
  if (switches.isOn('muted', target) || (switches.isOn('allMuted', target) && group.role === 'member')) throw platformFailure(profile, 'muted')
  return target
}

/** The target person of a send: a friend, or a member of a common group. */
function privateTarget(platform: Platform, params: Record<string, unknown>): Target {
  const { profile, switches, world } = platform
  const id = requireId(platform, params, 'user_id')
  if (switches.isOn('anyTarget', null)) world.ensureFriend(id)
  const isKnown = world.friends.has(id) || [...world.groups.values()].some(({ members, hasBot }) => hasBot && members.has(id))
  if (!isKnown) throw platformFailure(profile, 'not-friend')
  return { type: 'private', id }
}
