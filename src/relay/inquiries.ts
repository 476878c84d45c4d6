import { RelayError } from '../errors'
import { Mutex } from '../lib/async'
import type { BotSelector, Target } from '../message/model'
import { SendError, type Account, type Contact } from '../platform/port'
import { inTime } from './clock'
import { messageIdsOf } from './delivery'
import type { History } from './history'
import type { RunningOptions } from './options'

/** How old a message may be that is recalled, in milliseconds: platforms allow some minutes, and to administrators of a group more. */
const recallable = 24 * 60 * 60 * 1000

/** How many deliveries are looked through for it, the newest first: whoever asks for what is not there asks for all of them. */
const maxLooked = 10_000

/** What a platform is asked beside the sending of messages. */
export class Inquiries {
  private readonly looks = new Mutex()

  constructor(private readonly context: RunningOptions) {}

  /**
   * Takes a platform message back that was sent within the last day, by one of the last 10,000 deliveries.
   *
   * @param messageId as the platform gave it
   * @param history where it is looked for
   * @param isAllowed whether its caller may do so where the message was sent; otherwise it is as if there were none
   * @throws RelayError `not-found`, `store-down`, or why the platform did not do it
   */
  async recall(messageId: string, history: Pick<History, 'all'>, isAllowed: (target: Target, platform: string) => boolean): Promise<void> {
    // One look at a time: however many callers ask, others get their turn.
    const found = await this.looks.run('', () => this.findSent(messageId, history, isAllowed))
    if (!found) throw new RelayError('not-found', 'this relay has sent no such message within the last day')
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
   * Who sends what is asked of this bot, or of the one that is chosen where none is asked for.
   *
   * @throws RelayError `unsent`
   */
  sender(bot: BotSelector): { platform: string, id: string, name: string } {
    const { platform, selfId, name } = this.context.port.choose(bot)
    return { platform, id: selfId, name }
  }

  /** The platform of the bot that would send now or later what is asked of this one; `undefined` while there is none. */
  platformFor(bot: BotSelector): string | undefined {
    try {
      return this.context.port.chooseLater(bot).platform
    } catch (error) {
      if (error instanceof RelayError && error.code === 'unsent') return
      throw error
    }
  }

  /**
   * The groups that the same bot is in, or those with whom it has a private chat.
   *
   * @throws RelayError `unsent`, or why the platform did not tell
   */
  async contacts(bot: BotSelector, kind: Target['kind']): Promise<Contact[]> {
    const account = this.context.port.choose(bot)
    return ask((kind === 'group' ? account.groups?.() : account.friends?.()) ?? [], this.context)
  }
}

/**
 * Waits for the answer, for as long as a call may take.
 *
 * @throws RelayError `refused`, `unsent`, `unanswered`, `stopping`
 */
async function ask<T>(work: T | Promise<T>, { clock, policy: { timeout }, stop }: RunningOptions): Promise<T> {
  try {
    const answer = await inTime(clock, Promise.resolve(work).then(value => ({ value })), timeout, stop)
    if (answer) return answer.value
  } catch (error) {
    throw error instanceof SendError ? describe(error) : error
  }
  throw stop.aborted ? new RelayError('stopping') : describe(new SendError('unanswered'))
}

const texts: Readonly<Record<SendError['outcome'], string>> = {
  refused: 'the platform refused it',
  suppressed: 'the platform refused it',
  unsent: 'nothing was done, try again later',
  unanswered: 'the platform did not answer in time',
}

/** A missing permission is a refusal here: nothing waits for it, as a delivery does. */
function describe(cause: SendError): RelayError {
  const { causeId, wording } = cause
  const outcome = causeId === 'not-permitted' ? 'refused' : cause.outcome
  const reason = wording ?? (outcome === 'unsent' ? 'the platform cannot be reached' : undefined)
  const { headers } = cause.toRelayError()
  return new RelayError(outcome, reason === undefined ? texts[outcome] : `${texts[outcome]}: ${reason}`, { cause, headers, logText: texts[outcome] })
}
