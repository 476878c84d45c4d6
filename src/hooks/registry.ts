import { RelayError } from '../errors'
import { digestTemplate } from './digest'
import type { Source } from './source'
import { sources } from './sources'
import { nameRule, namePattern } from './templates'

/** The sources by name: the built-in ones and those of other plugins. */
export class Sources {
  private readonly known = new Map(sources.map(source => [source.name, source]))

  get(name: string): Source | undefined {
    return this.known.get(name)
  }

  names(): string[] {
    return [...this.known.keys()]
  }

  /** The source whose name was probably meant: one letter away, or two from six letters on. */
  nearest(name: string): string | undefined {
    const most = name.length < 6 ? 1 : 2
    const all = this.names().map(known => ({ known, letters: distance(name.toLowerCase(), known) }))
    return all.filter(({ letters }) => letters <= most).sort((a, b) => a.letters - b.letters)[0]?.known
  }

  /**
   * Adds a source.
   *
   * @returns a function that removes the source
   * @throws RelayError `bad-request` for a malformed name; `conflict` for a name in use
   */
  add(source: Source): () => void {
    const { name } = source
    if (!namePattern.test(name)) throw new RelayError('bad-request', nameRule)
    if (this.known.has(name) || name === digestTemplate) {
      throw new RelayError('conflict', `there is a source "${name}" already: choose another name`)
    }
    this.known.set(name, source)
    return () => void this.known.delete(name)
  }
}

/** How many letters must be inserted, removed or replaced to make one word of another. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let index = 0; index < from.length; index++) {
    const next = [index + 1]
    for (let at = 0; at < to.length; at++) {
      next.push(Math.min((next[at] ?? 0) + 1, (row[at + 1] ?? 0) + 1, (row[at] ?? 0) + (from[index] === to[at] ? 0 : 1)))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
