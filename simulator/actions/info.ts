import { badParameter, executionError } from '../answers'
import { parseId } from '../parse'
import type { Platform } from '../platform'
import type { Person } from '../types'
import type { Group } from '../world'
import type { Action } from './action'
import { requireId } from './targets'

/** Who the bot is and whom it knows. Data as OneBot 11 has it. */
export const infoActions: Readonly<Record<string, Action>> = {
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
  get_stranger_info: ({ platform, call }) => {
    const id = parseId(call.params.user_id)
    if (id === null) throw badParameter(platform.profile, 'user_id must be a number')
    return stranger(platform.world.person(id))
  },
}

function requireGroup(platform: Platform, params: Record<string, unknown>): Group {
  const group = platform.world.groups.get(requireId(platform, params, 'group_id'))
  if (group?.hasBot !== true) throw executionError(platform.profile, '群聊不存在', 'GROUP_NOT_FOUND')
  return group
}

function groupInfo({ profile, switches }: Platform, { id, name, members }: Group): object {
  const info = { group_id: Number(id), group_name: name, member_count: members.size, max_member_count: 200 }
  const isMuted = switches.isOn('allMuted', { type: 'group', id })
  // QQ's time for a mute without an end.
  if (profile.tells.has('all-muted-until')) return { ...info, shut_up_all_timestamp: isMuted ? 2 ** 32 - 1 : 0 }
  return profile.tells.has('all-muted') ? { ...info, group_all_shut: isMuted ? -1 : 0 } : info
}

function stranger({ id, name }: Person): object {
  return { user_id: Number(id), nickname: name, sex: 'unknown', age: 0 }
}

function memberInfo({ profile, switches, world }: Platform, { id, role }: Group, person: Person): object {
  const isSelf = person.id === world.self.id
  const info = { group_id: Number(id), ...stranger(person), card: '', role: isSelf ? role : 'member' }
  const until = isSelf ? switches.until('muted', { type: 'group', id }) : 0
  return profile.tells.has('mute') ? { ...info, shut_up_timestamp: Math.ceil(until / 1000) } : info
}
