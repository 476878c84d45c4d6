import { RelayError } from '../errors'
import { isNear } from '../lib/words'
import { say } from '../texts/text'
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
    const isOff = (letters: number) => (known: string): boolean => isNear(name.toLowerCase(), known, letters)
    return this.names().find(isOff(1)) ?? this.names().find(isOff(name.length < 6 ? 1 : 2))
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
      throw new RelayError('conflict', say('source-exists', { name }))
    }
    this.known.set(name, source)
    return () => void this.known.delete(name)
  }
}
