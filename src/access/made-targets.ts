import type { Logger } from 'koishi'
import { demand, RelayError } from '../errors'
import { isObject } from '../lib/shape'
import { maxTargets, reachOf, skippedWays, toName, writeAddress } from '../message/target'
import type { Ways, Named, TargetNames } from '../message/model'
import { parseNamed } from '../message/names'
import type { Store } from '../relay/store/store'
import { Loaded } from './loaded'

/** A name and its origin. */
export interface ListedTarget {
  name: string
  named: Named
  source: 'settings' | 'made'
}

type Names = ReadonlyMap<string, Named>

/** The most names. */
const maxNames = 1000

/** The names of targets: those of the settings, and those that are made while the relay runs. The former take precedence. */
export class MadeTargets implements TargetNames {
  private readonly made: Loaded<Named>
  /** The made names whose ways were checked last, and the warnings about skipped ones. */
  private checked: Names | undefined
  private warnings = new Set<string>()

  /**
   * @param fixed the names of the settings
   * @param store returns the present store
   */
  constructor(private readonly fixed: Names, store: () => Store, private readonly logger: Pick<Logger, 'warn'>) {
    this.made = new Loaded(store, 'targets', (name, value) => parseNamed(name, value), logger)
  }

  get(name: string): Named | undefined {
    return this.fixed.get(name) ?? this.present().get(name)
  }

  get failure(): Error | undefined {
    const made = this.made.tryGet()
    return made instanceof Error ? made : undefined
  }

  /** All names, those of the settings first, including made ones without effect because the settings use the same name. */
  list(): ListedTarget[] {
    const listOf = (names: Names, source: ListedTarget['source']): ListedTarget[] => [...names].map(([name, named]) => ({ name, named, source }))
    return [...listOf(this.fixed, 'settings'), ...listOf(this.present(), 'made')]
  }

  /**
   * Makes or changes a name. An HTTP address with `secret: true` keeps its present secret.
   *
   * @returns the name, and whether it is new
   * @throws RelayError `bad-request`, which names the field; `conflict`, `store-down`, `storage-full`
   */
  async put(written: string, value: unknown): Promise<{ listed: ListedTarget, isNew: boolean }> {
    const name = toName(written)
    const made = this.made.get()
    const json = withSecrets(value, made.get(name)?.first)
    // Without the name itself, which must not be one of its own ways.
    const named = parseNamed(name, json, { get: other => other === name ? undefined : this.get(other) })
    const reach = new Set(reachOf(name, named, this).map(writeAddress))
    demand(reach.size <= maxTargets, `more than ${maxTargets} targets: a request may not have so many, so make several names`)
    this.demandFree(name)
    const isNew = !made.has(name)
    if (isNew && made.size >= maxNames) throw new RelayError('conflict', `there are ${maxNames} names already: remove one first`)
    await this.made.change(name, { json, entry: named })
    this.checkWays()
    return { listed: { name, named, source: 'made' }, isNew }
  }

  /** @throws RelayError `not-found`, `conflict`, `store-down`, `storage-full` */
  async remove(written: string): Promise<void> {
    const name = toName(written)
    if (!this.made.get().has(name)) {
      this.demandFree(name)
      throw new RelayError('not-found', 'no such name')
    }
    await this.made.change(name, undefined)
    this.checkWays()
  }

  private demandFree(name: string): void {
    if (this.fixed.has(name)) throw new RelayError('conflict', 'this name is in the settings of the relay: change it there')
  }

  /** Warns about names with a way that was removed, or no longer leads to a single chat. Such ways may be there from the start. */
  checkWays(): void {
    const made = this.present()
    if (made === this.checked) return
    this.checked = made
    const all = this.list().filter(({ named, name }) => this.get(name) === named)
    const found = all.flatMap(({ name, named }) => skippedWays(named, this).map(way => (
      `targets: ${JSON.stringify(name)} skips a way: ${JSON.stringify(way)} is gone, or leads to more than one chat`
    )))
    for (const line of found) if (!this.warnings.has(line)) this.logger.warn('%s', line)
    this.warnings = new Set(found)
  }

  /** The made names; none while they cannot be read. */
  private present(): Names {
    const made = this.made.tryGet()
    return made instanceof Error ? none : made
  }
}

const none: Names = new Map()

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
