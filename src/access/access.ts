import { randomBytes, timingSafeEqual } from 'node:crypto'
import { RelayError } from '../errors'
import { sha256 } from '../lib/crypto'
import { Caller, type Usage } from './caller'
import type { Key } from './keys'
import { scopes } from './scopes'

/** The number of comparisons is a multiple of this: as long as there are fewer keys, it does not tell how many there are. */
const slots = 32

/** Knows the keys, and who has which. */
export class Access {
  private keys: readonly Key[] = []
  /** Those of the keys, at their places, and after them some that nobody can have. */
  private digests: readonly Buffer[] = []

  /** @param keys those beside the master key, which may do everything */
  constructor(apiKey: string, keys: readonly Key[]) {
    const caller = new Caller(null, { allow: new Set(scopes) })
    const master: Key = { digest: sha256(apiKey), secrets: [apiKey], expires: Infinity, isFrom: () => true, caller }
    this.set([master, ...keys])
  }

  /**
   * Makes a key that may do everything, for a part of the plugin that makes requests itself. It is in memory only.
   *
   * @param name by which log and records call it
   * @returns the key, and what takes it back
   */
  lend(name: string): { key: string, takeBack: () => void } {
    const text = randomBytes(32).toString('base64url')
    const caller = new Caller(name, { allow: new Set(scopes) })
    const key: Key = { digest: sha256(text), secrets: [], expires: Infinity, isFrom: () => true, caller }
    this.set([...this.keys, key])
    return { key: text, takeBack: () => this.set(this.keys.filter(each => each !== key)) }
  }

  private set(keys: readonly Key[]): void {
    const spare = (slots - keys.length % slots) % slots
    this.keys = keys
    this.digests = [...keys.map(({ digest }) => digest), ...Array.from({ length: spare }, () => randomBytes(32))]
  }

  /** How the keys of each name were used; `null` is the name of the master key. */
  usage(): Map<string | null, Usage> {
    const usages = new Map<string | null, Usage>()
    for (const { caller: { name, usage } } of this.keys) {
      const before = usages.get(name) ?? usage
      const { last, address } = usage.last > before.last ? usage : before
      const sum = before === usage ? usage : { messages: before.messages + usage.messages, refused: before.refused + usage.refused }
      usages.set(name, { last, address, messages: sum.messages, refused: sum.refused })
    }
    return usages
  }

  /**
   * Finds out who makes a request.
   *
   * @param candidates what was given as a key, at different places; a right one among them suffices
   * @param addressOf tells where it came from, `undefined` where that is not known; only asked where it counts
   * @param now in milliseconds since the epoch
   * @throws RelayError `unauthorized`, in the same words whatever was wrong; only the log is told
   */
  identify(candidates: readonly Buffer[], addressOf: () => string | undefined, now = Date.now()): Caller {
    let reason = candidates.length > 0 ? 'wrong API key' : 'no API key'
    for (const candidate of candidates) {
      const key = this.find(sha256(candidate))
      if (!key) continue
      if (key.expires > now && key.isFrom(addressOf)) return key.caller
      reason = reasonOf(key, now)
    }
    throw unauthorized(reason)
  }

  /**
   * Finds out who makes a request that carries a signature: whoever has the secret that it was made with, and is allowed `hooks`.
   *
   * @param matches whether it was made with a secret; asked for all of them, whatever fits first
   * @param addressOf as for {@link identify}
   * @param now in milliseconds since the epoch
   * @throws RelayError `unauthorized`
   */
  verify(matches: (secret: string) => boolean, addressOf: () => string | undefined, now = Date.now()): Caller {
    const signers = this.keys.filter(({ caller }) => caller.may('hooks'))
    const [key] = signers.filter(({ secrets }) => secrets.filter(secret => matches(secret)).length > 0)
    if (!key) throw unauthorized('wrong signature')
    if (key.expires > now && key.isFrom(addressOf)) return key.caller
    throw unauthorized(reasonOf(key, now))
  }

  /** Compares all of them, however early one is found: how long it takes tells nothing about them. */
  private find(candidate: Buffer): Key | undefined {
    let found = -1
    this.digests.forEach((digest, place) => {
      if (timingSafeEqual(candidate, digest)) found = place
    })
    return this.keys[found]
  }
}

/** Why a right key is refused, for the log. */
function reasonOf({ caller, expires }: Key, now: number): string {
  return `the key ${JSON.stringify(caller.name)} ${expires > now ? 'may not be used from there' : 'has expired'}`
}

function unauthorized(logText: string): RelayError {
  return new RelayError('unauthorized', undefined, { headers: { 'www-authenticate': 'Bearer' }, logText })
}
