/**
 * Reads a list of words, or a text with its words between commas. `undefined` when it is neither; blank words do not count. YAML makes a
 * number of a word of digits.
 */
export function readList(value: unknown): string[] | undefined {
  const elements: unknown[] = typeof value === 'string' ? value.split(',') : Array.isArray(value) ? value : [undefined]
  const words: string[] = []
  for (const element of elements) {
    if (typeof element !== 'string' && typeof element !== 'number') return
    const word = String(element).trim()
    if (word) words.push(word)
  }
  return words
}
