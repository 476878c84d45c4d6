import type { Logger } from 'koishi'
import { RelayError } from '../errors'
import { printable } from '../lib/log'
import type { Named, TargetNames } from '../message/model'
import { parseNamed } from '../message/names'
import type { JsonObject } from '../message/parse'
import { Made } from './store'

/** A name for targets, and where it comes from. */
export interface ListedTarget {
  name: string
  named: Named
  source: 'settings' | 'made'
}

/** The most names. */
const maxNames = 1000

/** The names for targets that are made while the relay runs. */
export class MadeTargets {
  readonly made: Made
  private readonly fixed: TargetNames
  private own: TargetNames = new Map()

  /** @param names those of the settings, which win; the others are added to it, and removed */
  constructor(private readonly names: Map<string, Named>, logger: Pick<Logger, 'warn'>) {
    this.fixed = new Map(names)
    this.made = new Made('targets', content => this.prepare(content), logger)
  }

  /** All names, those of the settings first; also those that the settings have taken, which do not count. */
  list(): ListedTarget[] {
    const listOf = (names: TargetNames, source: ListedTarget['source']): ListedTarget[] => [...names].map(([name, named]) => ({ name, named, source }))
    return [...listOf(this.fixed, 'settings'), ...listOf(this.own, 'made')]
  }

  /**
   * Makes a name, or has it lead elsewhere.
   *
   * @returns it, and whether it is a new one
   * @throws RelayError `bad-request`, which names the field; `conflict`, `store-down`
   */
  async put(name: string, value: unknown): Promise<{ listed: ListedTarget, isNew: boolean }> {
    const named = parseNamed(name, value)
    let isNew = false
    await this.made.change(content => {
      this.demandFree(name)
      isNew = !Object.hasOwn(content, name)
      if (isNew && Object.keys(content).length >= maxNames) throw new RelayError('conflict', `there are ${maxNames} names already: remove one first`)
      return { ...content, [name]: value }
    })
    return { listed: { name, named, source: 'made' }, isNew }
  }

  /** @throws RelayError `not-found`, `conflict`, `store-down` */
  async remove(name: string): Promise<void> {
    await this.made.change(content => {
      if (Object.hasOwn(content, name)) return Object.fromEntries(Object.entries(content).filter(([each]) => each !== name))
      this.demandFree(name)
      throw new RelayError('not-found', 'no such name')
    })
  }

  private demandFree(name: string): void {
    if (this.fixed.has(name)) throw new RelayError('conflict', 'this name is in the settings of the relay: change it there')
  }

  /** Reads all names, before any of them counts. */
  private prepare(content: JsonObject): () => void {
    const own = new Map(Object.entries(content).map(([name, value]) => [name, read(name, value)]))
    return () => {
      for (const name of this.own.keys()) if (!this.fixed.has(name)) this.names.delete(name)
      for (const [name, named] of own) if (!this.fixed.has(name)) this.names.set(name, named)
      this.own = own
    }
  }
}

/** @throws RelayError `bad-request`, which names the entry */
function read(name: string, value: unknown): Named {
  try {
    return parseNamed(name, value)
  } catch (error) {
    throw new RelayError('bad-request', `the entry ${JSON.stringify(printable(name.slice(0, 64)))}: ${RelayError.from(error).message}`)
  }
}
