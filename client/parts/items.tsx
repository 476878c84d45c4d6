import { writeSize } from '../../src/lib/words'
import { numberOf, textOf, type Fields } from '../fields'
import { texts, wordFor } from '../texts'

/** The kind of an item, with its name and size if they are known. */
export function describeItem({ type, name, size, user_id: user }: Fields): string {
  const parts = [wordFor(texts.value.kinds, textOf(type)), textOf(name), textOf(user), size === undefined ? '' : writeSize(numberOf(size))]
  return texts.value.common.list(parts.filter(Boolean))
}

/** The items of a delivery in one line: their texts, or the kinds of items without text. */
export function summarize(items: readonly Fields[]): string {
  return items.map(item => textOf(item.msg) || `[${describeItem({ type: item.type, name: item.name })}]`).join(' ')
}
