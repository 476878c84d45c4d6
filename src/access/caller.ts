import { RelayError } from '../errors'
import type { TokenBucket } from '../lib/token-bucket'
import type { ParsedItem, Target } from '../message/model'
import { deeds, type Scope } from './scopes'
import { fits, type TargetPattern } from './target-pattern'

/** What a key allows. */
export interface Rights {
  allow: ReadonlySet<Scope>
  /** Absent: every target. */
  targets?: () => readonly TargetPattern[]
  /** The targets that it allows to those who send by this name only; none for a name that it does not have. */
  byName?: (name: string) => readonly TargetPattern[]
  /** Absent: no limit. */
  rate?: TokenBucket
}

/** How a key was used since the plugin was loaded. */
export interface Usage {
  /** The time of its last request, in milliseconds since the epoch; 0 for never. */
  last: number
  /** The address of its last request, where it is known. */
  address: string | undefined
  /** The messages that it was allowed to send. */
  messages: number
  /** Its requests that were refused as forbidden or too many. */
  refused: number
}

/** The caller of a request, identified by a key. */
export class Caller {
  /**
   * @param name that of the key, which several keys may share; `null` for the master key
   * @param usage that of the key before, where this is a new one in its place
   */
  constructor(
    readonly name: string | null, private rights: Rights,
    readonly usage: Usage = { last: 0, address: undefined, messages: 0, refused: 0 },
  ) {}

  /** The caller of the key that takes the place of this one's. */
  successor(): Caller {
    return new Caller(this.name, this.rights, this.usage)
  }

  /** Takes all rights away, from requests under way as well. */
  revoke(): void {
    this.rights = { allow: new Set(), targets: () => [] }
  }

  /** Notes a request. */
  note(address: string | undefined): void {
    this.usage.last = Date.now()
    this.usage.address = address
  }

  /** Counts a request that was refused as forbidden or too many. */
  noteRefusal(): void {
    this.usage.refused++
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
   * @param allowed the first one names the deed in the error
   * @throws RelayError `forbidden`
   */
  demand(allowed: readonly [Scope, ...Scope[]]): void {
    for (const scope of allowed) if (this.rights.allow.has(scope)) return
    throw new RelayError('forbidden', `this key may not ${deeds[allowed[0]]}`)
  }

  /**
   * Checks that the caller may send to a target.
   *
   * @param platform `undefined` while the bot is not chosen: then any platform will do
   * @param asked the target in the caller's own words, which may be a name; the error repeats it
   * @throws RelayError `forbidden`
   */
  demandTarget(target: Target, platform: string | undefined, asked: string): void {
    if (!this.maySendTo(target, platform, asked)) throw new RelayError('forbidden', `this key may not send to ${asked}`)
  }

  /**
   * Checks that the caller may mention everybody, where an item does so.
   *
   * @throws RelayError `forbidden`
   */
  demandMentions(items: readonly ParsedItem[]): void {
    for (const item of items) if ('userId' in item && item.userId === null) this.demand(['mention-all'])
  }

  /** Whether the caller may send to a target; platform and name as for `demandTarget`, without a name directly. */
  maySendTo(target: Target, platform: string | undefined, asked?: string): boolean {
    const { targets, byName } = this.rights
    const isCovered = (pattern: TargetPattern): boolean => fits(pattern, target, platform)
    return !targets || targets().some(isCovered) || (asked !== undefined && byName?.(asked).some(isCovered) === true)
  }

  /**
   * Counts messages that are about to be sent.
   *
   * @throws RelayError `rate-limited`
   */
  spend(messages: number): void {
    const wait = this.rights.rate?.take(messages) ?? 0
    if (wait > 0) throw new RelayError('rate-limited', undefined, { headers: { 'retry-after': String(Math.ceil(wait / 1000)) } })
    this.usage.messages += messages
  }

  /** Counts further messages that an accepted one has become: the next ones wait for them. */
  owe(messages: number): void {
    this.rights.rate?.owe(messages)
    this.usage.messages += messages
  }
}
