import type { Settings } from './options'
import type { Person } from './types'

/** A role in a group. */
export type Role = 'member' | 'admin' | 'owner'

/** A group. `hasBot` tells whether the bot is a member, `role` its role. `english` is as for a person. */
export interface Group { id: string, name: string, english?: string, members: Map<string, Person>, hasBot: boolean, role: Role }

/** The people and groups on the platform. */
export class World {
  readonly self: Person
  readonly groups = new Map<string, Group>()
  readonly friends = new Map<string, Person>()

  constructor({ selfId, groups, friends }: Settings) {
    this.self = { id: selfId, name: '模拟机器人', english: 'Simulated bot' }
    for (const { id, name, english, members } of groups) {
      const group = this.ensureGroup(id)
      Object.assign(group, { name, english })
      for (const member of members) group.members.set(member.id, member)
    }
    for (const friend of friends) this.friends.set(friend.id, friend)
  }

  /** The group. If it does not exist, it is created with only the bot in it. */
  ensureGroup(id: string): Group {
    const known = this.groups.get(id)
    if (known !== undefined) return known
    const members = new Map([[this.self.id, this.self]])
    const group: Group = { id, name: `群 ${id}`, english: `Group ${id}`, members, hasBot: true, role: 'member' }
    this.groups.set(id, group)
    return group
  }

  ensureFriend(id: string): Person {
    const known = this.friends.get(id)
    if (known !== undefined) return known
    const friend = this.person(id)
    this.friends.set(id, friend)
    return friend
  }

  ensureMember(groupId: string, userId: string): Person {
    const group = this.ensureGroup(groupId)
    const known = group.members.get(userId)
    if (known !== undefined) return known
    const member = this.person(userId)
    group.members.set(userId, member)
    return member
  }

  /** A person by account. A stranger gets a made-up name. */
  person(id: string): Person {
    if (id === this.self.id) return this.self
    const friend = this.friends.get(id)
    if (friend !== undefined) return friend
    for (const group of this.groups.values()) {
      const member = group.members.get(id)
      if (member !== undefined) return member
    }
    return { id, name: `用户 ${id}`, english: `User ${id}` }
  }
}
