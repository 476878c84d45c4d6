import type { Account } from '../../platform/port'
import { isRepeatable, type MessageKind } from '../look-up/look-up'
import { longestText } from './fit'
import { maxWeight, type PreparedItem } from './media'

/** The part of an item that composing needs. */
interface Composable {
  type: 'text' | 'image' | 'file' | 'video' | 'audio' | 'at' | 'reply'
  /** How many bytes the item adds to its platform message. */
  weight: number
  text?: string
}

/**
 * Groups the items of a request into platform messages. Texts and images share messages, in their order. A video or a voice message stands
 * alone, and files follow at the end, each as a message of its own. A mention or a reply joins the next text or image, or else the last
 * message; a reply comes first in its message. A message that would be too heavy or too long, or several messages on the platform, is
 * divided, so that each has its own result.
 */
export function compose<T extends Composable>(items: readonly T[], account: Pick<Account, 'longestText' | 'fits'>): T[][] {
  const maxLength = longestText(account)
  const messages: T[][] = []
  let mixed: T[] = []
  let weight = 0
  let length = 0
  /** Mentions and replies that join the next item. */
  let ahead: T[] = []

  /** A reply stands first in its message. */
  function attach(): void {
    if (ahead.length === 0) return
    mixed.unshift(...ahead.filter(isReply))
    mixed.push(...ahead.filter(each => !isReply(each)))
    ahead = []
  }

  function close(): void {
    if (mixed.length > 0) messages.push(mixed)
    mixed = []
    weight = 0
    length = 0
  }

  for (const item of items) {
    switch (item.type) {
      case 'file':
        break
      case 'at':
      case 'reply':
        ahead.push(item)
        break
      case 'video':
      case 'audio':
        close()
        messages.push([item])
        break
      default: {
        const added = item.text?.length ?? 0
        const isFull = weight + item.weight > maxWeight || (added > 0 && length + added > maxLength)
          || account.fits?.([...mixed, ...ahead, item]) === false
        // A message answers one other message.
        if (isFull || (ahead.some(isReply) && mixed.some(isReply))) close()
        attach()
        mixed.push(item)
        weight += item.weight
        length += added
      }
    }
  }
  attach()
  close()
  return [...messages, ...items.filter(item => item.type === 'file').map(item => [item])]
}

/** Divides a platform message into the smallest ones: each item with its mentions and reply. */
export function divide<T extends Composable>(message: readonly T[]): T[][] {
  const parts: T[][] = []
  let ahead: T[] = []
  for (const item of message) {
    ahead.push(item)
    if (item.type === 'at' || item.type === 'reply') continue
    parts.push(ahead)
    ahead = []
  }
  const last = parts.pop() ?? []
  return [...parts, [...last, ...ahead]]
}

function isReply({ type }: Composable): boolean {
  return type === 'reply'
}

export function kindOf(items: readonly Pick<Composable, 'type'>[]): MessageKind {
  const has = (...types: Composable['type'][]): boolean => items.some(({ type }) => types.includes(type))
  return has('file') ? 'file' : has('video', 'audio') ? 'heavy' : has('image', 'at', 'reply') ? 'mixed' : 'text'
}

/** The assumed speed of a platform, in bytes a millisecond. NapCat itself reckons with 256 KiB a second. */
const bytesPerMs = 256 * 1024 / 1000
/** The settling time of a message with a file, a video, a voice message or a link of unknown size, in milliseconds. */
const longestSettling = 10 * 60_000

/** How long the platform may still carry out a call with these items that got no clear answer, in milliseconds. */
export function settlingTime(items: readonly Pick<PreparedItem, 'type' | 'bytes'>[], least: number): number {
  const longest = Math.max(longestSettling, least)
  const isLong = !isRepeatable(kindOf(items)) || items.some(({ bytes }) => bytes === undefined)
  return isLong ? longest : Math.min(least + items.reduce((sum, { bytes = 0 }) => sum + bytes, 0) / bytesPerMs, longest)
}
