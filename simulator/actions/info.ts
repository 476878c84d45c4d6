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
  get_status: () => ({ online: true, good: true, stat: {} }),
  get_version_info: ({ platform: { profile } }) => ({
    app_name: profile.appName,
    app_version: profile.appVersion,
    protocol_version: 'v11',
  }),
  can_send_image: () => ({ yes: true }),
  can_send_record: () => ({ yes: true }),
  get_group_list: ({ platform: { world } }) => [...world.groups.values()].filter(group => group.hasBot).map(groupInfo),
  get_friend_list: ({ platform: { world } }) => [...world.friends.values()].map(friend => ({ ...stranger(friend), remark: '' })),
  get_group_info: ({ platform, call }) => groupInfo(requireGroup(platform, call.params)),
  get_group_member_list: ({ platform, call }) => {
    const group = requireGroup(platform, call.params)
    return [...group.members.values()].map(person => memberInfo(group, person))
  },
  get_group_member_info: ({ platform, call }) => {
    const group = requireGroup(platform, call.params)
    const person = group.members.get(requireId(platform, call.params, 'user_id'))
    if (person === undefined) throw executionError(platform.profile, '群成员不存在', 'MEMBER_NOT_FOUND')
    return memberInfo(group, person)
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

function groupInfo({ id, name, members }: Group): object {
  return { group_id: Number(id), group_name: name, member_count: members.size, max_member_count: 200 }
}

function stranger({ id, name }: Person): object {
  return { user_id: Number(id), nickname: name, sex: 'unknown', age: 0 }
}

function memberInfo(group: Group, person: Person): object {
  return { group_id: Number(group.id), ...stranger(person), card: '', role: 'member' }
}
