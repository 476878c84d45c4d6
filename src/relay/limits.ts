import type { Limit } from '../platform/port'
import type { Clock } from './clock'

/**
 * Until when platforms want no further calls, because too many came: for one chat, or for all chats of an account. It outlives a reload of
 * the plugin.
 */
export class Limits {
  /** On the monotonic clock, by lanes and by the `sid` of bots. */
  private readonly ends = new Map<string, number>()

  constructor(private readonly clock: Clock) {}

  /**
   * A platform has limited an account.
   *
   * @param bot its `sid`
   * @param chat as the lane is named
   */
  note(bot: string, chat: string, { scope, after }: Limit): void {
    const now = this.clock.now()
    for (const [name, end] of this.ends) if (end <= now) this.ends.delete(name)
    const name = scope === 'account' ? bot : chat
    this.ends.set(name, Math.max(this.ends.get(name) ?? 0, now + after))
  }

  /** For how long nothing may be called, in milliseconds. */
  rest(bot: string, chat: string): number {
    const end = Math.max(this.ends.get(bot) ?? 0, this.ends.get(chat) ?? 0)
    return Math.max(end - this.clock.now(), 0)
  }
}
