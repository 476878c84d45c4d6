import { demand, RelayError } from '../errors'
import { isObject } from '../lib/shape'
import { maxTargets, reachOf, skippedWays, toName, writeAddress } from '../message/target'
import type { Named, TargetNames, Ways } from '../message/model'
import { callsOf, parseNamed } from '../message/names'
import { say, type Text } from '../texts/text'
import { Made, type Listed, type MadeOptions } from './made'

/** The names of targets: those of the settings, and those that are made while the relay runs. */
export class MadeTargets extends Made<Named> implements TargetNames {
  /** The made names whose ways were checked last, and the warnings about skipped ones. */
  private checked: ReadonlyMap<string, Named> | undefined
  private warnings = new Set<string>()
  private readonly logger: MadeOptions<Named>['logger']

  /** @param isCalled whether a word means somebody who can be called by `@` */
  constructor(options: Omit<MadeOptions<Named>, 'table' | 'kind' | 'parse'>, isCalled: (word: string) => boolean) {
    super({ ...options, table: 'targets', kind: 'name', parse: (name, value, isNew) => {
      if (!isNew) return parseNamed(name, value)
      // Without the name itself, which must not be one of its own ways.
      const named = parseNamed(name, value, { names: { get: other => other === name ? undefined : this.get(other) }, isCalled })
      const reach = new Set(reachOf(name, named, this).map(writeAddress))
      demand(reach.size <= maxTargets, say('too-many-targets-of-name', { most: maxTargets }))
      return named
    }, usersOf: name => [
      ...this.usersBy(({ ack }) => ack?.escalate.some(({ to }) => to === name) === true), ...options.usersOf?.(name) ?? [],
    ] })
    this.logger = options.logger
  }

  /** Makes or changes a name, as for `Made`. An HTTP address with `secret: true` keeps its present secret. */
  override async put(written: string, value: unknown): Promise<{ listed: Listed<Named>, isNew: boolean }> {
    const put = await super.put(written, withSecrets(value, this.get(toName(written))?.first))
    this.checkWays()
    return put
  }

  override async remove(written: string): Promise<void> {
    await super.remove(written)
    this.checkWays()
  }

  /** The names that call somebody, for errors. */
  thatCall(word: string): Text[] {
    return this.usersBy(named => callsOf(named).includes(word))
  }

  private usersBy(uses: (named: Named) => boolean): Text[] {
    return this.inForce().filter(({ entry }) => uses(entry)).map(({ name }) => say('the-name', { name: JSON.stringify(name) }))
  }

  /** Warns about names with a way that was removed, or no longer leads to a single chat. Such ways may be there from the start. */
  checkWays(): void {
    const made = this.present()
    if (made === this.checked) return
    this.checked = made
    const found = this.inForce().flatMap(({ name, entry }) => skippedWays(entry, this).map(way => (
      say('skips-way', { name: JSON.stringify(name), way: JSON.stringify(way) })
    )))
    for (const line of found) if (!this.warnings.has(String(line))) this.logger.warn(line)
    this.warnings = new Set(found.map(String))
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
    if (!known || !('url' in known)) throw new RelayError('bad-request', say('secret-true-without'))
    return { ...way, secret: known.secret }
  }) }
}
