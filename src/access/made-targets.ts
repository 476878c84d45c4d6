import type { Logger } from 'koishi'
import { RelayError } from '../errors'
import { isObject, type JsonObject } from '../lib/shape'
import { skippedWays } from '../message/target'
import type { Ladder, Named, TargetNames } from '../message/model'
import { parseNamed } from '../message/names'
import { Made, readEntry } from './store'

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
  /** The warnings about ways that are skipped now. */
  private warnings = new Set<string>()

  /** @param names those of the settings, which win; the others are added to it, and removed */
  constructor(private readonly names: Map<string, Named> & { isIncomplete?: boolean }, private readonly logger: Pick<Logger, 'warn'>) {
    this.fixed = new Map(names)
    names.isIncomplete = true
    this.made = new Made('targets', content => this.prepare(content), logger)
  }

  /** All names, those of the settings first; also those that the settings have taken, which do not count. */
  list(): ListedTarget[] {
    const listOf = (names: TargetNames, source: ListedTarget['source']): ListedTarget[] => [...names].map(([name, named]) => ({ name, named, source }))
    return [...listOf(this.fixed, 'settings'), ...listOf(this.own, 'made')]
  }

  /**
   * Makes a name, or has it lead elsewhere. Where an HTTP address has `secret: true`, it keeps the secret that it has.
   *
   * @returns it, and whether it is a new one
   * @throws RelayError `bad-request`, which names the field; `conflict`, `store-down`
   */
  async put(name: string, value: unknown): Promise<{ listed: ListedTarget, isNew: boolean }> {
    const whole = withSecrets(value, this.own.get(name)?.first)
    // A name cannot be one of its own ways.
    const named = parseNamed(name, whole, new Map([...this.names].filter(([other]) => other !== name)))
    let isNew = false
    await this.made.change(content => {
      this.demandFree(name)
      isNew = !Object.hasOwn(content, name)
      if (isNew && Object.keys(content).length >= maxNames) throw new RelayError('conflict', `there are ${maxNames} names already: remove one first`)
      return { ...content, [name]: whole }
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
    const own = new Map(Object.entries(content).map(([name, value]) => [name, readEntry(name, () => parseNamed(name, value))]))
    return () => {
      for (const name of this.own.keys()) if (!this.fixed.has(name)) this.names.delete(name)
      for (const [name, named] of own) if (!this.fixed.has(name)) this.names.set(name, named)
      this.own = own
      this.names.isIncomplete = false
      this.warn()
    }
  }

  /** Says which names have a way that leads nowhere since something was removed or changed. */
  private warn(): void {
    const found = [...this.names].flatMap(([name, named]) => skippedWays(named, this.names).map(way => (
      `targets: ${JSON.stringify(name)} skips a way: ${JSON.stringify(way)} is gone, or leads to more than one chat`
    )))
    for (const line of found) if (!this.warnings.has(line)) this.logger.warn('%s', line)
    this.warnings = new Set(found)
  }
}

/**
 * Puts the secrets of HTTP addresses where `secret: true` stands for them, as in what is listed.
 *
 * @throws RelayError `bad-request` where an address has none
 */
function withSecrets(value: unknown, before: Ladder | undefined): unknown {
  if (!isObject(value) || !Array.isArray(value.first)) return value
  return { ...value, first: Array.from<unknown, unknown>(value.first, rung => {
    if (!isObject(rung) || rung.secret !== true) return rung
    const known = before?.rungs.find(each => 'url' in each && each.url === rung.url && each.secret !== undefined)
    if (!known || !('url' in known)) throw new RelayError('bad-request', 'first: secret is true for an address that has no secret yet: write the secret')
    return { ...rung, secret: known.secret }
  }) }
}
