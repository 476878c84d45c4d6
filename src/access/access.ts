import { randomBytes, timingSafeEqual } from 'node:crypto'
import { RelayError } from '../errors'
import { sha256 } from '../lib/crypto'
import { say, type Text } from '../texts/text'
import { Caller } from './caller'
import type { Key } from './keys'
import { allScopes } from './scopes'
import type { Counts, Usages } from './usage'

/** The number of comparisons is a multiple of this, so that it does not reveal the number of keys. */
const slots = 32

/** Holds the keys, and identifies callers by them. */
export class Access {
  /** The keys that belong to this process, and those that were made while the relay runs; an error while these cannot be read. */
  private own: readonly Key[]
  private made: readonly Key[] | Error = []
  /** All of them. */
  private keys: readonly Key[] = []
  /** The digests of the keys, in the same order, followed by random ones. */
  private digests: readonly Buffer[] = []

  /**
   * @param keys the keys of the settings, besides the master key, which may do everything
   * @param readMade returns the keys that were made while the relay runs, as another list once they change
   */
  constructor(
    apiKey: string, keys: readonly Key[], private readonly usages: Usages, private readonly readMade: () => readonly Key[] | Error,
  ) {
    this.own = [this.fullKey(null, apiKey, [apiKey]), ...keys]
    this.combine()
  }

  /**
   * Makes a key with all rights, in memory only, for a part of the plugin that makes HTTP requests to the relay.
   *
   * @param name its name in log and deliveries
   * @returns the key, and a function that removes it
   */
  lend(name: string): { key: string, takeBack: () => void } {
    const text = randomBytes(32).toString('base64url')
    const key = this.fullKey(name, text, [])
    const set = (keys: readonly Key[]): void => {
      this.own = keys
      this.combine()
    }
    set([...this.own, key])
    return { key: text, takeBack: () => set(this.own.filter(each => each !== key)) }
  }

  /** Reads the made keys again if they have changed. */
  private refresh(): void {
    const made = this.readMade()
    if (made === this.made) return
    this.made = made
    this.combine()
  }

  private combine(): void {
    const keys = this.keys = [...this.own, ...this.made instanceof Error ? [] : this.made]
    const spare = (slots - keys.length % slots) % slots
    this.digests = [...keys.map(({ digest }) => digest), ...Array.from({ length: spare }, () => randomBytes(32))]
  }

  /** How the present keys were used since their first use, by their names; `null` is the name of the master key. */
  usage(): Map<string | null, Counts> {
    this.refresh()
    this.usages.load()
    return new Map(this.keys.map(({ caller: { name, usage } }) => [name, usage.counts]))
  }

  /**
   * Identifies the caller of a request.
   *
   * @param candidates the keys of the request, from several places; one right key is enough
   * @param address the address of the caller; `undefined` if it is unknown
   * @param now in milliseconds since the epoch
   * @throws RelayError `unauthorized`, with one text for all reasons; only the log has the reason. `store-down`, in the words of the
   *   store, while the made keys cannot be read
   */
  identify(candidates: readonly Buffer[], address: string | undefined, now = Date.now()): Caller {
    let reason = say(candidates.length > 0 ? 'wrong-key' : 'no-key')
    for (const candidate of candidates) {
      const key = this.find(candidate)
      if (!key) continue
      const refusal = whyRefused(key, address, now)
      if (refusal === undefined) return key.caller
      reason = refusal
    }
    throw this.refuse(candidates.length > 0, reason)
  }

  /** Whether a text is a key, even one that is refused. */
  knows(text: string): boolean {
    return this.find(text) !== undefined
  }

  private find(candidate: Buffer | string): Key | undefined {
    this.refresh()
    const given = sha256(candidate)
    let key: Key | undefined
    // Compares every digest, so that the time reveals nothing about them.
    for (const [place, digest] of this.digests.entries()) if (timingSafeEqual(given, digest)) key = this.keys[place]
    return key
  }

  /**
   * Identifies the caller of a signed request by a key that has the scope `hooks` and the secret of the signature.
   *
   * @param matches whether a secret made the signature; called for every secret, so that the time reveals nothing
   * @param address as for {@link identify}
   * @param now in milliseconds since the epoch
   * @throws RelayError as {@link identify}, with a text of its own
   */
  verify(matches: (secret: string) => boolean, address: string | undefined, now = Date.now()): Caller {
    this.refresh()
    const signers = this.keys.filter(({ caller }) => caller.may('hooks'))
    const [key] = signers.filter(({ secrets }) => secrets.filter(secret => matches(secret)).length > 0)
    const reason = key ? whyRefused(key, address, now) : say('wrong-signature')
    if (!key || reason !== undefined) throw this.refuse(true, reason, say('no-such-secret'))
    return key.caller
  }

  /**
   * Makes the failure. While the made keys cannot be read, a given key is not called wrong, because many callers would give up.
   *
   * @param said the text; by default that of the code
   */
  private refuse(isGiven: boolean, reason: Text | undefined, said?: Text): RelayError {
    if (isGiven && this.made instanceof Error) return RelayError.from(this.made)
    return new RelayError('unauthorized', said, { headers: { 'www-authenticate': 'Bearer' }, ...reason && { logText: reason } })
  }

  private fullKey(name: string | null, text: string, secrets: readonly string[]): Key {
    const caller = new Caller(name, { allow: new Set(allScopes) }, this.usages.of(name))
    return { digest: sha256(text), secrets, expires: Infinity, caller }
  }
}

/** The reason why a known key is refused, for the log; `undefined` if it is accepted. */
function whyRefused({ expires, isFrom, caller: { name } }: Key, address: string | undefined, now: number): Text | undefined {
  if (expires <= now) return say('key-has-expired', { name: JSON.stringify(name) })
  if (isFrom && (address === undefined || !isFrom(address))) return say('key-not-from-there', { name: JSON.stringify(name) })
}
