import type { Logger } from 'koishi'
import { demand, RelayError } from '../errors'
import { isObject, type JsonObject } from '../lib/shape'
import { maxTargets, reachOf, skippedWays, toName, writeAddress } from '../message/target'
import type { Ways, Named, TargetNames } from '../message/model'
import { parseNamed } from '../message/names'
import { Made, readEntry } from './store'

/** A name and its origin. */
export interface ListedTarget {
  name: string
  named: Named
  source: 'settings' | 'made'
}

/** The most names. */
const maxNames = 1000

/** The names that are made while the relay runs. */
export class MadeTargets {
  readonly made: Made
  private readonly fixed: TargetNames
  private own: TargetNames = new Map()
  /** The present warnings about skipped ways. */
  private warnings = new Set<string>()

  /** @param names the names of the settings, which take precedence; made names are added to this map and removed from it */
  constructor(private readonly names: Map<string, Named> & { isIncomplete?: boolean }, private readonly logger: Pick<Logger, 'warn'>) {
    this.fixed = new Map(names)
    names.isIncomplete = true
    this.made = new Made('targets', content => this.prepare(content), logger)
  }

  /** All names, those of the settings first, including made ones without effect because the settings use the same name. */
  list(): ListedTarget[] {
    const listOf = (names: TargetNames, source: ListedTarget['source']): ListedTarget[] => [...names].map(([name, named]) => ({ name, named, source }))
    return [...listOf(this.fixed, 'settings'), ...listOf(this.own, 'made')]
  }

  /**
   * Makes or changes a name. An HTTP address with `secret: true` keeps its present secret.
   *
   * @returns the name, and whether it is new
   * @throws RelayError `bad-request`, which names the field; `conflict`, `store-down`
   */
  async put(written: string, value: unknown): Promise<{ listed: ListedTarget, isNew: boolean }> {
    const name = toName(written)
    const whole = withSecrets(value, this.own.get(name)?.first)
    // Without the name itself, which must not be one of its own ways.
    const named = parseNamed(name, whole, new Map([...this.names].filter(([other]) => other !== name)))
    const reach = new Set(reachOf(name, named, this.names).map(writeAddress))
    demand(reach.size <= maxTargets, `more than ${maxTargets} targets: a request may not have so many, so make several names`)
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
  async remove(written: string): Promise<void> {
    const name = toName(written)
    await this.made.change(content => {
      if (Object.hasOwn(content, name)) return Object.fromEntries(Object.entries(content).filter(([each]) => each !== name))
      this.demandFree(name)
      throw new RelayError('not-found', 'no such name')
    })
  }

  private demandFree(name: string): void {
    if (this.fixed.has(name)) throw new RelayError('conflict', 'this name is in the settings of the relay: change it there')
  }

  /** Reads all names, and returns a function that puts them into force. */
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

  /** Warns about names with a way that was removed, or no longer leads to a single chat. */
  private warn(): void {
    const found = [...this.names].flatMap(([name, named]) => skippedWays(named, this.names).map(way => (
      `targets: ${JSON.stringify(name)} skips a way: ${JSON.stringify(way)} is gone, or leads to more than one chat`
    )))
    for (const line of found) if (!this.warnings.has(line)) this.logger.warn('%s', line)
    this.warnings = new Set(found)
  }
}

/**
 * Replaces `secret: true` of HTTP addresses, as in listed names, by their present secrets.
 *
 * @throws RelayError `bad-request` if an address has no secret yet
 */
function withSecrets(value: unknown, before: Ways | undefined): unknown {
  if (!isObject(value) || !Array.isArray(value.first)) return value
  return { ...value, first: Array.from<unknown, unknown>(value.first, way => {
    if (!isObject(way) || way.secret !== true) return way
    const known = before?.ways.find(each => 'url' in each && each.url === way.url && each.secret !== undefined)
    if (!known || !('url' in known)) throw new RelayError('bad-request', 'first: secret is true for an address that has no secret yet: write the secret')
    return { ...way, secret: known.secret }
  }) }
}
