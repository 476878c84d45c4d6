import { badParameter, platformFailure } from '../answers'
import { parseId } from '../parse'
import type { Platform } from '../platform'
import type { Target } from '../types'

/** A required id out of the parameters. */
export function requireId({ profile }: Platform, params: Record<string, unknown>, key: 'group_id' | 'user_id'): string {
  const id = parseId(params[key])
  if (id === null) throw badParameter(profile, `${key} must be a number`)
  return id
}

/** The group a send goes to, which must let the bot speak. */
export function groupTarget(platform: Platform, params: Record<string, unknown>): Target {
  const { profile, switches, world } = platform
  const id = requireId(platform, params, 'group_id')
  const target: Target = { type: 'group', id }
  const group = switches.isOn('anyTarget', null) ? world.ensureGroup(id) : world.groups.get(id)
  if (group?.hasBot !== true) throw platformFailure(profile, 'not-member')
  if (switches.isOn('muted', target) || (switches.isOn('allMuted', target) && group.role === 'member')) throw platformFailure(profile, 'muted')
  return target
}

/** The person a send goes to; members of common groups may be written to as well as friends. */
export function privateTarget(platform: Platform, params: Record<string, unknown>): Target {
  const { profile, switches, world } = platform
  const id = requireId(platform, params, 'user_id')
  if (switches.isOn('anyTarget', null)) world.ensureFriend(id)
  const isKnown = world.friends.has(id) || [...world.groups.values()].some(({ members, hasBot }) => hasBot && members.has(id))
  if (!isKnown) throw platformFailure(profile, 'not-friend')
  return { type: 'private', id }
}
