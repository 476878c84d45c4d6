import { numberOf, textOf, type Fields } from '../fields'
import { texts, writeSize } from '../texts'

/** The kind of an item, and its name and size where they are known. */
export function describeItem({ type, name, size, user_id: user }: Fields): string {
  const kinds: Partial<Record<string, string>> = texts.value.kinds
  const parts = [kinds[textOf(type)] ?? textOf(type), textOf(name), textOf(user), size === undefined ? '' : writeSize(numberOf(size))]
  return texts.value.common.list(parts.filter(Boolean))
}

/** The items of a delivery in one line: what they say, and the kinds of those that say nothing. */
export function summarize(items: readonly Fields[]): string {
  return items.map(item => textOf(item.msg) || `[${describeItem({ type: item.type, name: item.name })}]`).join(' ')
}
