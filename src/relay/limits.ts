import type { Limit } from '../platform/port'
import type { Clock } from './clock'

/**
 * The rate limits that platforms have answered with, for one chat or for all chats of an account. They survive a reload of the plugin.
 */
export class Limits {
  /** The ends of limits on the monotonic clock, by chat or by the `sid` of a bot. */
  private readonly ends = new Map<string, number>()

  constructor(private readonly clock: Clock) {}

  /**
   * Notes a limit.
   *
   * @param bot the `sid` of the account
   * @param lane the name of the lane
   */
  note(bot: string, lane: string, { scope, after }: Limit): void {
    const now = this.clock.now()
    for (const [name, end] of this.ends) if (end <= now) this.ends.delete(name)
    const name = scope === 'account' ? bot : chatOf(lane)
    this.ends.set(name, Math.max(this.ends.get(name) ?? 0, now + after))
  }

  /** The time until the next call is allowed, in milliseconds. */
  rest(bot: string, lane: string): number {
    if (this.ends.size === 0) return 0
    const end = Math.max(this.ends.get(bot) ?? 0, this.ends.get(chatOf(lane)) ?? 0)
    return Math.max(end - this.clock.now(), 0)
  }
}

/** The chat of a lane. A topic, whose ID has that of its group in front, shares the limit of the group. */
function chatOf(lane: string): string {
  return /^.*?\/(?:group|private):[^:]*/s.exec(lane)?.[0] ?? lane
}
