/** What the rules of composing look at. */
interface Composable {
  type: 'text' | 'image' | 'file' | 'video' | 'audio' | 'at' | 'reply'
  /** How many bytes of data the item adds to the platform message that holds it. */
  weight: number
}

/**
 * Groups the items of a request into platform messages: text and images in their order share messages, a video or a voice message stands
 * alone, and every file follows as a message of its own. A mention or a reply goes with the next text or image, and the reply stands
 * first in its message; with none to come, mentions end the last one. A message that would weigh too much is divided.
 *
 * @param maxWeight the most that the data within one platform message may weigh, in bytes
 */
export function compose<T extends Composable>(items: readonly T[], maxWeight: number): T[][] {
  const messages: T[][] = []
  let mixed: T[] = []
  let weight = 0
  /** What goes with the item to come. */
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
      default:
        // A message answers one other message.
        if (weight + item.weight > maxWeight || (ahead.some(isReply) && mixed.some(isReply))) close()
        attach()
        mixed.push(item)
        weight += item.weight
    }
  }
  attach()
  close()
  return [...messages, ...items.filter(item => item.type === 'file').map(item => [item])]
}

/** Divides a platform message into the least that can be sent: each item with the mentions and the reply that go with it. */
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
