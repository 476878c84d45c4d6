import { v7 as uuid } from 'uuid'
import type { Item, MentionItem } from '../../message/model'
import type { Account } from '../../platform/port'
import { longestText } from '../send/fit'
import type { Entry, Deliveries } from '../delivery/deliveries'
import { createDelivery, isText, partsFor, type Delivery } from '../delivery/delivery'
import type { DigestMember } from '../delivery/flow'
import type { Delay, RelayOptions } from '../options'

/** The longest digest, and the part of it that is reserved for its frame, in characters. */
const longest = 3_500
const reserve = 200
/** How much of each text a digest shows, in characters. */
const longestLine = 200

/** The door of digests. */
export const digestDoor = 'digest'

/** Whether a delivery may leave in a digest. */
export function joins(delivery: Delivery, delay: Delay | undefined): boolean {
  const { deferred, door, flow: { urgent, policy, members } } = delivery
  const isAsked = Boolean(policy?.digest) || (delay !== undefined && door.startsWith('hooks/'))
  return isAsked && deferred && !urgent && !members && delivery.open.length === 0 && isText(delivery)
}

/**
 * Makes a digest of several deliveries. The file has it, with the list of its members, before it leaves.
 *
 * @throws RelayError: the members are still to leave by themselves
 */
export async function gather(
  { deliveries, clock, recordContent, digest: { write } }: RelayOptions & { deliveries: Deliveries },
  [first, ...others]: readonly [Entry, ...Entry[]], account: Account, delay: Delay | undefined,
): Promise<Entry> {
  const all = [first, ...others]
  const { seq, bot, target, flow: { policy } } = first.delivery
  const mentions = new Map<string | null, MentionItem>()
  const groups = new Map<string, { text: string, message: string, ids: string[], last: string }>()
  for (const entry of all) {
    const { id, flow: { thread } } = entry.delivery
    for (const item of deliveries.itemsOf(entry)) {
      if ('userId' in item) mentions.set(item.userId, item)
      if (!('text' in item)) continue
      const name = thread?.name ?? id
      const { ids = [] } = groups.get(name) ?? {}
      // A thread moves to the place of its newest text.
      groups.delete(name)
      groups.set(name, { text: inOneLine(item.line ?? item.text), message: item.text, ids: [...ids, id], last: id })
    }
    deliveries.shed(entry)
  }
  let left = Math.min(longest, longestText(account)) - reserve
  const shown = [...groups.values()].reverse().filter(({ text }) => (left -= text.length + 10) >= 0).reverse()
  const text = await write({
    count: all.length, delay,
    since: Math.min(...all.map(({ delivery: { createdAt, flow: { sendAt = 0 } } }) => Math.max(createdAt, sendAt))),
    lines: shown.map(({ text, message, ids }) => ({ text, message, count: ids.length })),
    more: all.length - shown.reduce((sum, { ids }) => sum + ids.length, 0),
  }, policy?.lang)
  const items: Item[] = [...mentions.values(), { type: 'text', text }]
  const visible = new Set(shown.map(({ last }) => last))
  const request = { mode: 'single', target, bot: {}, items } as const
  const delivery = createDelivery({ id: uuid(), caller: null, door: digestDoor }, seq, clock.wall(), request)
  const members = all.map(({ delivery: { id } }): DigestMember => ({ id, shown: visible.has(id) }))
  // Without quiet hours: these were over when the digest was made.
  const { digest } = policy ?? {}
  const flow = { members, ...policy && digest !== undefined && { policy: { name: policy.name, digest } } }
  const expiresAt = Math.max(...all.map(entry => entry.delivery.expiresAt ?? 0))
  Object.assign(delivery, partsFor(request, recordContent), { bot, deferred: true, expiresAt, flow })
  return deliveries.accept(delivery, items)
}

/** Joins all lines of a text, because alerts often differ only after the first one. */
function inOneLine(text: string): string {
  // Not by a regular expression: one for blanks before a line break takes quadratic time for a long run of blanks.
  const characters = Array.from(text.split('\n').map(line => line.trim()).filter(Boolean).join(' · '))
  return characters.length > longestLine ? `${characters.slice(0, longestLine - 1).join('')}…` : characters.join('')
}
