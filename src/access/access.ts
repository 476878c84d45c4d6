import { randomBytes, timingSafeEqual } from 'node:crypto'
import { RelayError } from '../errors'
import { sha256 } from '../lib/crypto'
import { Caller, type Usage } from './caller'
import type { Key } from './keys'
import { allScopes } from './scopes'

/** The number of comparisons is a multiple of this, so that it does not tell the number of keys. */
const slots = 32

const noSuchSecret = 'wrong signature: the secret matches no key; give the sender the secret of a key that is allowed hooks'

/** Holds the keys, and identifies callers by them. */
export class Access {
  private keys: readonly Key[] = []
  /** The digests of the keys, at the same places, and random ones after them. */
  private digests: readonly Buffer[] = []

  /** Those that were made while the relay runs; `undefined` while they are not known. */
  private made: ReadonlySet<Key> | undefined = new Set()

  /** @param keys those beside the master key, which may do everything */
  constructor(apiKey: string, keys: readonly Key[]) {
    this.set([fullKey(null, apiKey, [apiKey]), ...keys])
  }

  /**
   * Makes a key with all rights, in memory only, for a part of the plugin that makes requests itself.
   *
   * @param name its name in log and records
   * @returns the key, and a function that takes it back
   */
  lend(name: string): { key: string, takeBack: () => void } {
    const text = randomBytes(32).toString('base64url')
    const key = fullKey(name, text, [])
    this.set([...this.keys, key])
    return { key: text, takeBack: () => this.set(this.keys.filter(each => each !== key)) }
  }

  /** Puts other keys in the place of those that were made while the relay runs; `undefined` while they are not known. */
  replaceMade(keys: readonly Key[] | undefined): void {
    const before = this.made
    this.made = keys && new Set(keys)
    this.set([...this.keys.filter(key => !before?.has(key)), ...keys ?? []])
  }

  private set(keys: readonly Key[]): void {
    const spare = (slots - keys.length % slots) % slots
    this.keys = keys
    this.digests = [...keys.map(({ digest }) => digest), ...Array.from({ length: spare }, () => randomBytes(32))]
  }

  /** The usage of the keys of each name; `null` is the name of the master key. */
  usage(): Map<string | null, Usage> {
    const usages = new Map<string | null, Usage>()
    // The keys of a rotation share theirs.
    for (const [usage, name] of new Map(this.keys.map(({ caller }) => [caller.usage, caller.name]))) {
      const before = usages.get(name) ?? { last: 0, address: undefined, messages: 0, refused: 0 }
      const { last, address } = usage.last > before.last ? usage : before
      usages.set(name, { last, address, messages: before.messages + usage.messages, refused: before.refused + usage.refused })
    }
    return usages
  }

  /**
   * Identifies the caller of a request.
   *
   * @param candidates the keys of the request, from several places; one right key is enough
   * @param address the caller's, `undefined` where it is unknown
   * @param now in milliseconds since the epoch
   * @throws RelayError `unauthorized`, with the same text for every reason; only the log tells it. `store-down` while keys are missing
   */
  identify(candidates: readonly Buffer[], address: string | undefined, now = Date.now()): Caller {
    let reason = candidates.length > 0 ? 'wrong API key' : 'no API key'
    for (const candidate of candidates) {
      const given = sha256(candidate)
      let key: Key | undefined
      // Each digest is compared, so that the time tells nothing about them.
      for (const [place, digest] of this.digests.entries()) if (timingSafeEqual(given, digest)) key = this.keys[place]
      if (!key) continue
      const refusal = whyRefused(key, address, now)
      if (refusal === undefined) return key.caller
      reason = refusal
    }
    throw this.refuse(candidates.length > 0, reason)
  }

  /**
   * Identifies the caller of a signed request: the key that is allowed `hooks` and has the secret of the signature.
   *
   * @param matches whether the signature was made with a secret; called for every secret, so that the time tells nothing
   * @param address as for {@link identify}
   * @param now in milliseconds since the epoch
   * @throws RelayError as {@link identify}, with a text of its own
   */
  verify(matches: (secret: string) => boolean, address: string | undefined, now = Date.now()): Caller {
    const signers = this.keys.filter(({ caller }) => caller.may('hooks'))
    const [key] = signers.filter(({ secrets }) => secrets.filter(secret => matches(secret)).length > 0)
    const reason = key ? whyRefused(key, address, now) : 'wrong signature'
    if (!key || reason !== undefined) throw this.refuse(true, reason, noSuchSecret)
    return key.caller
  }

  /**
   * While keys are missing, nobody who gave one is told that it is wrong: many callers would give up.
   *
   * @param message that of the code unless given
   */
  private refuse(isGiven: boolean, reason: string | undefined, message?: string): RelayError {
    if (isGiven && !this.made) return new RelayError('store-down')
    return new RelayError('unauthorized', message, { headers: { 'www-authenticate': 'Bearer' }, logText: reason })
  }
}

function fullKey(name: string | null, text: string, secrets: readonly string[]): Key {
  return { digest: sha256(text), secrets, expires: Infinity, caller: new Caller(name, { allow: new Set(allScopes) }) }
}

/** Why a right key does not count here and now, for the log. */
function whyRefused({ expires, isFrom, caller: { name } }: Key, address: string | undefined, now: number): string | undefined {
  if (expires <= now) return `the key ${JSON.stringify(name)} has expired`
  if (isFrom && (address === undefined || !isFrom(address))) return `the key ${JSON.stringify(name)} may not be used from there`
}
