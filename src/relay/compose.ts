/** What the rules of composing look at. */
interface Composable {
  type: 'text' | 'image' | 'file' | 'video'
  /** How many bytes of data the item adds to the platform message that holds it. */
  weight: number
}

/**
 * Groups the items of a request into platform messages: text and images in their order share messages,
 * a video stands alone, and every file follows as a message of its own. A message that would weigh too much is divided.
 *
 * @param maxWeight the most that the data within one platform message may weigh, in bytes
 */
export function compose<T extends Composable>(items: readonly T[], maxWeight: number): T[][] {
  const messages: T[][] = []
  let mixed: T[] = []
  let weight = 0

  function close(): void {
    if (mixed.length > 0) messages.push(mixed)
    mixed = []
    weight = 0
  }

  for (const item of items) {
    if (item.type === 'file') continue
    if (item.type === 'video' || weight + item.weight > maxWeight) close()
    mixed.push(item)
    weight += item.weight
    if (item.type === 'video') close()
  }
  close()
  return [...messages, ...items.filter(item => item.type === 'file').map(item => [item])]
}
