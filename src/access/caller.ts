import { RelayError } from '../errors'
import { minute } from '../lib/time'
import { all, either } from '../lib/words'
import type { Address, ParsedItem, Target } from '../message/model'
import { say, type Text } from '../texts/text'
import type { Scope } from './scopes'
import { fits, type TargetPattern } from './target-pattern'
import { Usage } from './usage'

/** A token bucket: it holds the messages of a minute, and refills at that rate. Times are milliseconds on the monotonic clock. */
export class Rate {
  /** When the bucket is full again. */
  private full = -Infinity

  constructor(private readonly perMinute: number) {}

  /**
   * Spends messages. A full bucket also allows more than a minute's messages, and later messages wait for the excess.
   *
   * @returns 0 if the messages are allowed; otherwise the time until they will be, and none is spent
   */
  take(count: number, now = performance.now()): number {
    const wait = Math.max(this.full - now, 0) + (Math.min(count / this.perMinute, 1) - 1) * minute
    // A shorter wait is a rounding error.
    if (wait >= 1) return wait
    this.owe(count, now)
    return 0
  }

  /** Spends messages, even more than are left. */
  owe(count: number, now = performance.now()): void {
    this.full = Math.max(this.full, now) + count / this.perMinute * minute
  }
}

/** The rights of a key. */
export interface Rights {
  allow: ReadonlySet<Scope>
  /** Absent: every target. */
  targets?: () => readonly TargetPattern[]
  /** Further targets that are allowed if the caller addresses them by this name; none for a name that the key does not list. */
  byName?: (name: string) => readonly TargetPattern[]
  /** The only sources of `/hooks` that the key can send through. Absent: no limit. */
  sources?: readonly string[]
  /** Absent: no limit. */
  rate?: Rate
}

/** The caller of a request, identified by a key. */
export class Caller {
  /** @param name the name of the key, which several keys may share; `null` for the master key */
  constructor(readonly name: string | null, private rights: Rights, readonly usage = new Usage()) {}

  /** The caller of a key that replaces this one's. */
  successor(): Caller {
    return new Caller(this.name, this.rights, this.usage)
  }

  /** Removes all rights, also from requests in flight. */
  revoke(): void {
    this.rights = { allow: new Set(), targets: () => [] }
  }

  /** Notes a request. */
  note(address: string | undefined): void {
    this.usage.note(address)
  }

  /** Counts a request that was refused as forbidden or too many. */
  noteRefusal(): void {
    this.usage.add({ refused: 1 })
  }

  may(scope: Scope): boolean {
    return this.rights.allow.has(scope)
  }

  /** The name of the only key whose deliveries the caller may see; `undefined` for all of them. */
  get confinedTo(): string | undefined {
    return this.name === null || this.may('manage') ? undefined : this.name
  }

  /**
   * Checks that the caller has one of these scopes.
   *
   * @throws RelayError `forbidden`
   */
  demand(allowed: readonly [Scope, ...Scope[]]): void {
    for (const scope of allowed) if (this.rights.allow.has(scope)) return
    const missing = either(...allowed)
    const { sources } = this
    throw new RelayError('forbidden', sources ? say('lacks-permission-and-limited', { missing, sources }) : say('lacks-permission', { missing }))
  }

  /**
   * Checks that the caller may send to a target.
   *
   * @param platform `undefined` while no bot is chosen: then any platform matches
   * @param asked the target in the caller's own words, which may be a name; the error repeats it
   * @throws RelayError `forbidden`
   */
  demandTarget(target: Target, platform: string | undefined, asked: string): void {
    if (!this.maySendTo(target, platform, asked)) throw new RelayError('forbidden', say('may-not-send-to', { target: asked }))
  }

  /**
   * Checks that the caller may send through a source.
   *
   * @param source its name in the address
   * @throws RelayError `forbidden`
   */
  demandSource(source: string): void {
    const { sources } = this
    if (sources && this.rights.sources?.includes(source) === false) throw new RelayError('forbidden', say('limited-to-sources', { sources }))
  }

  /** The paths of the sources that the caller is limited to; absent if there is no limit. */
  private get sources(): Text | undefined {
    const { sources } = this.rights
    return sources && all(...sources.map(name => `/hooks/${name}`))
  }

  /**
   * Checks that the caller may mention everybody, if an item does so.
   *
   * @throws RelayError `forbidden`
   */
  demandMentions(items: readonly ParsedItem[]): void {
    for (const item of items) if ('userId' in item && item.userId === null) this.demand(['mention-all'])
  }

  /** Whether the caller may send to a target. The parameters are those of `demandTarget`; without `asked`, no name is considered. */
  maySendTo(target: Target, platform: string | undefined, asked?: string): boolean {
    const { targets, byName } = this.rights
    const isCovered = (pattern: TargetPattern): boolean => fits(pattern, target, platform)
    return !targets || targets().some(isCovered) || (asked !== undefined && byName?.(asked).some(isCovered) === true)
  }

  /** Whether the caller may send to each of these addresses. @param asked as for `demandTarget` */
  maySendToAll(addresses: readonly Address[], asked: string): boolean {
    return addresses.every(({ target, platform }) => this.maySendTo(target, platform, asked))
  }

  /**
   * Counts messages that are about to be sent.
   *
   * @throws RelayError `rate-limited`
   */
  spend(messages: number): void {
    const wait = this.rights.rate?.take(messages) ?? 0
    if (wait > 0) throw new RelayError('rate-limited', undefined, { headers: { 'retry-after': String(Math.ceil(wait / 1000)) } })
    this.usage.add({ messages })
  }

  /** Counts messages that an accepted one was split into. They are always allowed, and later messages wait for them. */
  owe(messages: number): void {
    this.rights.rate?.owe(messages)
    this.usage.add({ messages })
  }
}
