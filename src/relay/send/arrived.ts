import type { Account, Receipt } from '../../platform/port'
import type { Entry } from '../delivery/deliveries'
import type { Open, Sent } from '../delivery/delivery'
import type { SendContext } from './context'
import { recallReplaced } from './thread'

/**
 * Does what follows from the arrival of a platform message, whether its send, a late answer or a look-up shows it: the message that it
 * replaces is recalled, and its delivery knows it.
 *
 * @returns the result of its items
 */
export async function arrived(
  context: SendContext, entry: Entry, account: Account, { indices, likeness }: Pick<Open, 'indices' | 'likeness'>, { messageIds }: Receipt,
): Promise<Sent> {
  await recallReplaced(context, entry, account, indices)
  // A copy takes no more memory than its entries; the list of a platform may have grown, and there are thousands of records. A message
  // without an ID is remembered by its likeness, so that no look-up takes it for an equal one.
  const sent: Sent = { success: true, messageIds: messageIds.slice(), ...messageIds.length === 0 && { likeness } }
  context.deliveries.correct(entry, indices, sent)
  return sent
}
