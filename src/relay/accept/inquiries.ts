import { RelayError } from '../../errors'
import { explain } from '../../message/causes'
import { Mutex } from '../../lib/async'
import { day } from '../../lib/time'
import type { BotSelector, Target } from '../../message/model'
import { SendError, type Account, type Contact } from '../../platform/port'
import { inTime } from '../clock'
import { messageIdsOf } from '../delivery/delivery'
import type { History } from '../delivery/history'
import type { RelayOptions } from '../options'
import type { TextId } from '../../texts/table'
import { clauses, say } from '../../texts/text'

export type { Contact }

/** The greatest age of a message to recall, in milliseconds: platforms allow some minutes, and more to administrators of a group. */
const recallable = day

/** How many deliveries, the newest first, are searched for it: a search for an unknown message reads all of them. */
const maxLooked = 10_000

type Asking = RelayOptions & { stop: AbortSignal }

/** Requests to platforms besides sending. */
export class Inquiries {
  private readonly looks = new Mutex()

  constructor(private readonly context: Asking) {}

  /**
   * Recalls a platform message of the last day that one of the last 10,000 deliveries sent.
   *
   * @param messageId as the platform returned it
   * @param history the deliveries to search
   * @param isAllowed whether the caller may recall messages to this target; otherwise the message counts as unknown
   * @throws RelayError `not-found`, `store-down`, or the reason of the platform
   */
  async recall(messageId: string, history: Pick<History, 'all'>, isAllowed: (target: Target, platform: string) => boolean): Promise<void> {
    // One search at a time, so that many of them leave time for other work.
    const found = await this.looks.run('', () => this.findSent(messageId, history, isAllowed))
    if (!found) throw new RelayError('not-found', say('no-such-message'))
    return ask(found.account.recall(found.target, messageId), this.context)
  }

  private async findSent(
    messageId: string, history: Pick<History, 'all'>, isAllowed: (target: Target, platform: string) => boolean,
  ): Promise<{ account: Account, target: Target } | undefined> {
    let count = 0
    for await (const delivery of history.all({ since: this.context.clock.wall() - recallable })) {
      const { bot, target } = delivery
      const account = messageIdsOf(delivery).includes(messageId) ? this.context.port.find(bot) : undefined
      if (account && isAllowed(target, account.platform)) return { account, target }
      if (++count === maxLooked) return
    }
  }

  /**
   * The bot that a request would use.
   *
   * @throws RelayError `unsent`
   */
  sender(bot: BotSelector): { platform: string, id: string, name: string } {
    const { platform, selfId, name } = this.context.port.choose(bot)
    return { platform, id: selfId, name }
  }

  /** The bot that a request would use now or later; `undefined` without such a bot. */
  candidate(bot: BotSelector): Pick<Account, 'platform' | 'isOnline'> | undefined {
    return this.context.port.candidate(bot)
  }

  /**
   * The groups, or the private chats, of the bot that a request would use.
   *
   * @throws RelayError `unsent`, or why the platform did not tell
   */
  async contacts(bot: BotSelector, kind: Target['kind']): Promise<Contact[]> {
    const account = this.context.port.choose(bot)
    return ask((kind === 'group' ? account.groups?.() : account.friends?.()) ?? [], this.context)
  }
}

/**
 * Waits for an answer, for no longer than the time of a call.
 *
 * @throws RelayError `refused`, `unsent`, `unanswered`, `stopping`
 */
async function ask<T>(work: T | Promise<T>, { clock, policy: { timeout }, stop }: Asking): Promise<T> {
  try {
    const answer = await inTime(clock, Promise.resolve(work).then(value => ({ value })), timeout, stop)
    if (answer) return answer.value
  } catch (error) {
    throw error instanceof SendError ? describe(error) : error
  }
  throw stop.aborted ? new RelayError('stopping') : describe(new SendError('unanswered'))
}

const texts = {
  refused: 'platform-refused-it',
  suppressed: 'platform-refused-it',
  unsent: 'nothing-done-try-later',
  unanswered: 'platform-did-not-answer',
} as const satisfies Readonly<Record<SendError['outcome'], TextId>>

/** Converts a failure. A missing permission is a refusal here, because nothing waits for the permission as a delivery does. */
function describe(cause: SendError): RelayError {
  const { causeId, wording } = cause
  const outcome = causeId === 'not-permitted' ? 'refused' : cause.outcome
  const reason = wording ?? (outcome === 'unsent' ? explain('unreachable') : undefined)
  const { headers } = cause.toRelayError()
  const usual = say(texts[outcome])
  return new RelayError(outcome, reason === undefined ? usual : clauses(usual, reason), { cause, headers, logText: usual })
}
