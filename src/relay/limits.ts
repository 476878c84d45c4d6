import type { Limit } from '../platform/port'
import type { Clock } from './clock'

/**
 * The rate limits that platforms have answered with, for one chat or for all chats of an account. They survive a reload of the plugin.
 */
export class Limits {
  /** The ends of limits on the monotonic clock, by chat or account. */
  private readonly ends = new Map<string, number>()

  constructor(private readonly clock: Clock) {}

  /** Notes a limit, if there is one. @param queue the name of the queue */
  note(queue: string, limit: Limit | undefined): void {
    if (!limit) return
    const { scope, after } = limit
    const now = this.clock.now()
    for (const [name, end] of this.ends) if (end <= now) this.ends.delete(name)
    const name = namesOf(queue)[scope]
    this.ends.set(name, Math.max(this.ends.get(name) ?? 0, now + after))
  }

  /** The time until the next call is allowed, in milliseconds. */
  rest(queue: string): number {
    if (this.ends.size === 0) return 0
    const { chat, account } = namesOf(queue)
    const end = Math.max(this.ends.get(account) ?? 0, this.ends.get(chat) ?? 0)
    return Math.max(end - this.clock.now(), 0)
  }
}

/** The chat and the account of a queue. A topic, whose ID has that of its group in front, shares the limit of the group. */
function namesOf(queue: string): Record<Limit['scope'], string> {
  const [chat = queue, account = queue] = /^(.*?)\/(?:group|private):[^:]*/s.exec(queue) ?? []
  return { chat, account }
}
