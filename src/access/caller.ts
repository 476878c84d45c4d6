import { RelayError } from '../errors'
import type { TokenBucket } from '../lib/token-bucket'
import type { ParsedItem, Target } from '../message/model'
import { deeds, type Scope } from './scopes'
import { fits, type TargetPattern } from './target-pattern'

/** What a key allows. */
export interface Rights {
  allow: ReadonlySet<Scope>
  /** Absent: every target. */
  targets?: readonly TargetPattern[]
  /** Absent: as many messages as it likes. */
  rate?: TokenBucket
}

/** How a key was used since the plugin was loaded. */
export interface Usage {
  /** When it was given last, in milliseconds since the epoch; 0 for never. */
  last: number
  /** Where it came from then, where that is known. */
  address: string | undefined
  /** How many messages it was let send. */
  messages: number
  /** How many of its requests were refused, because they were not allowed or too much. */
  refused: number
}

/** Whoever makes a request, known by its key. */
export class Caller {
  readonly usage: Usage = { last: 0, address: undefined, messages: 0, refused: 0 }

  /** @param name that of the key, which several may share; `null` for the master key */
  constructor(readonly name: string | null, private readonly rights: Rights) {}

  /** Notes that its key was given now. */
  note(address: string | undefined): void {
    Object.assign(this.usage, { last: Date.now(), address })
  }

  /** Counts a request that was refused because it was not allowed, or too much. */
  noteRefusal(): void {
    this.usage.refused++
  }

  may(scope: Scope): boolean {
    return this.rights.allow.has(scope)
  }

  /** The only key whose deliveries it may see, by its name; `undefined` where it may see all. */
  get confinedTo(): string | undefined {
    return this.name === null || this.may('manage') ? undefined : this.name
  }

  /**
   * Checks that it may do something.
   *
   * @param allowed the scopes of which one suffices; the first says what it is about
   * @throws RelayError `forbidden`
   */
  demand(allowed: readonly [Scope, ...Scope[]]): void {
    if (!allowed.some(scope => this.may(scope))) throw new RelayError('forbidden', `this key may not ${deeds[allowed[0]]}`)
  }

  /**
   * Checks that it may send to a target.
   *
   * @param platform `undefined` while it is not known through which bot the message goes: then it may be any
   * @param asked the target in the caller's own words, for what a name leads to is told to nobody who may not send there
   * @throws RelayError `forbidden`
   */
  demandTarget(target: Target, platform: string | undefined, asked: string): void {
    if (!this.maySendTo(target, platform)) throw new RelayError('forbidden', `this key may not send to ${asked}`)
  }

  /**
   * Checks that it may mention those whom items mention.
   *
   * @throws RelayError `forbidden`
   */
  demandMentions(items: readonly ParsedItem[]): void {
    if (items.some(item => !(item instanceof RelayError) && item.type === 'at' && item.userId === null)) this.demand(['mention-all'])
  }

  /** Whether it may send to a target; the platform as for `demandTarget`. */
  maySendTo(target: Target, platform: string | undefined): boolean {
    const { targets } = this.rights
    return !targets || targets.some(pattern => fits(pattern, target, platform))
  }

  /**
   * Counts messages that it is about to send.
   *
   * @throws RelayError `rate-limited`
   */
  spend(messages: number): void {
    const wait = this.rights.rate?.take(messages) ?? 0
    if (wait > 0) throw new RelayError('rate-limited', undefined, { headers: { 'retry-after': String(Math.ceil(wait / 1000)) } })
    this.usage.messages += messages
  }
}
