import { numberOf, textOf, type Fields } from '../fields'
import { texts, wordFor, writeSize } from '../texts'

/** The kind of an item, and its name and size where they are known. */
export function describeItem({ type, name, size, user_id: user }: Fields): string {
  const parts = [wordFor(texts.value.kinds, textOf(type)), textOf(name), textOf(user), size === undefined ? '' : writeSize(numberOf(size))]
  return texts.value.common.list(parts.filter(Boolean))
}

/** The items of a delivery in one line: what they say, and the kinds of those that say nothing. */
export function summarize(items: readonly Fields[]): string {
  return items.map(item => textOf(item.msg) || `[${describeItem({ type: item.type, name: item.name })}]`).join(' ')
}
