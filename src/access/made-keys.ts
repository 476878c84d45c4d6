import type { Logger } from 'koishi'
import { randomBytes } from 'node:crypto'
import { demand, RelayError } from '../errors'
import { equalsSecret, sha256 } from '../lib/crypto'
import { quoted } from '../lib/log'
import { fieldsOf, type JsonObject } from '../lib/shape'
import { isSet } from '../lib/words'
import type { TargetNames } from '../message/model'
import type { Access } from './access'
import type { Caller } from './caller'
import { parseExpiry } from './expiry'
import { parseEntry, type Key, type KeyView } from './keys'
import { Made, readEntry } from './store'

/** A key that was made while the relay runs. */
export interface MadeKey extends KeyView {
  /** In ISO 8601. */
  createdAt: string
}

/** The secrets of a key, which are shown only once. */
interface Secrets {
  key: string
  /** Checks signatures. */
  secret?: string
}

/** The most keys. */
const maxKeys = 1000
/** The longest time for which a replaced key stays valid, in seconds. */
const maxGrace = 7 * 24 * 60 * 60

/** Names that fit into a path and into lists. */
const namePattern = /^(?!\.\.?$)[^/:,\s]+$/

/** The keys that are made while the relay runs. Only the digest of a key is stored. */
export class MadeKeys {
  readonly made: Made
  private views: ReadonlyMap<string, MadeKey> = new Map()
  /** The callers of the valid keys, by digest. */
  private callers: ReadonlyMap<string, Caller> = new Map()
  private readonly fixedNames: ReadonlySet<string | null>
  private readonly fixedDigests: ReadonlySet<string>

  /**
   * @param fixed the keys of the settings: their names and secrets take precedence
   * @param names the names of targets
   */
  constructor(
    private readonly access: Access, apiKey: string, fixed: readonly Key[], private readonly names: TargetNames, logger: Pick<Logger, 'warn'>,
  ) {
    this.fixedNames = new Set(fixed.map(({ caller }) => caller.name))
    const secrets = [apiKey, ...fixed.flatMap(key => key.secrets)].map(text => sha256(text))
    this.fixedDigests = new Set([...secrets, ...fixed.map(({ digest }) => digest)].map(digest => digest.toString('hex')))
    this.made = new Made('keys', content => this.prepare(content), logger)
    access.replaceMade(undefined)
  }

  /** All made keys, including those without effect because the settings use the same name or key. */
  list(): MadeKey[] {
    return [...this.views.values()]
  }

  /**
   * Makes a key.
   *
   * @param fields the fields of an entry of the setting `keys`, without `key`; with `signs`, a secret for signatures is made as well
   * @throws RelayError `bad-request`, which names the field; `conflict`, `store-down`
   */
  async create({ signs = false, name: givenName, ...fields }: JsonObject): Promise<Secrets & { name: string }> {
    demand(!('key' in fields), 'key must be left out: the relay makes it')
    demand(typeof signs === 'boolean', 'signs must be true or false')
    demand(!signs || !('secret' in fields), 'give signs or secret, only one of them')
    const secrets: Secrets = { key: newSecret(), ...signs && { secret: newSecret() } }
    const entry = {
      ...fields, ...signs && { allow: fields.allow ?? ['hooks'], secret: secrets.secret }, key: digestOf(secrets.key),
    }
    const { view, caller, expires } = parseEntry({ ...entry, name: givenName }, new Set(), this.names).key
    demand(expires > Date.now(), 'expires is over: the key would never work')
    const name = view?.name ?? ''
    demand(namePattern.test(name), 'name must be without blanks, slashes, colons and commas')
    demand(!(signs || isSet(fields.secret)) || caller.may('hooks'), 'a secret for signatures needs hooks in allow: signatures count there only')
    await this.made.change(content => {
      if (this.fixedNames.has(name) || Object.hasOwn(content, name)) throw new RelayError('conflict', 'there is a key of this name already')
      if (typeof fields.secret === 'string' && this.isUsed(fields.secret.trim(), content)) throw new RelayError('conflict', 'another key has this secret: give one that is used for nothing else')
      if (Object.keys(content).length >= maxKeys) throw new RelayError('conflict', `there are ${maxKeys} keys already: remove one first`)
      return { ...content, [name]: { ...entry, created_at: new Date().toISOString() } }
    })
    return { ...secrets, name }
  }

  /**
   * Replaces a key, and its secret if it has one. The rights stay the same.
   *
   * @param grace for how long the old key and its secret stay valid, in seconds; 0 by default
   * @throws RelayError `bad-request`, `not-found`, `conflict`, `store-down`
   */
  async rotate(name: string, grace: unknown = 0): Promise<Secrets> {
    demand(typeof grace === 'number' && grace >= 0 && grace <= maxGrace, `grace must be a number of seconds from 0 to ${maxGrace}`)
    const secrets: Secrets = { key: newSecret() }
    await this.made.change(content => {
      const entry = this.find(content, name)
      const { expires = Infinity } = this.views.get(name) ?? {}
      if (expires <= Date.now()) throw new RelayError('conflict', 'this key has expired, and a new one would have, too: remove it, and make another')
      if (isSet(entry.secret)) secrets.secret = newSecret()
      const { key, secret } = entry
      const previous = grace > 0 ? { key, secret, until: new Date(Date.now() + grace * 1000).toISOString() } : undefined
      return { ...content, [name]: { ...entry, ...secrets, key: digestOf(secrets.key), previous } }
    })
    return secrets
  }

  /** @throws RelayError `not-found`, `conflict`, `store-down` */
  async remove(name: string): Promise<void> {
    await this.made.change(content => {
      this.find(content, name)
      return Object.fromEntries(Object.entries(content).filter(([each]) => each !== name))
    })
  }

  /** @throws RelayError `not-found`, `conflict` */
  private find(content: JsonObject, name: string): JsonObject {
    if (Object.hasOwn(content, name)) return fieldsOf(content[name])
    if (this.fixedNames.has(name)) throw new RelayError('conflict', 'this key is in the settings of the relay: change it there')
    throw new RelayError('not-found', 'no such key')
  }

  /** Reads all entries, and returns a function that puts them into force. */
  private prepare(content: JsonObject): () => void {
    const known = new Set(this.fixedDigests)
    const former = new Map([...this.callers.values()].map(caller => [caller.name, caller]))
    const views = new Map<string, MadeKey>()
    const callers = new Map<string, Caller>()
    const keys: Key[] = []
    for (const [name, value] of Object.entries(content)) {
      const { previous, created_at: createdAt, ...entry } = fieldsOf(value)
      // The settings may have a key of the same name, or the same key under another name.
      const isTaken = this.fixedNames.has(name) || this.isFixed(entry)
      const { view, ...fresh } = readEntry(name, () => parseEntry({ ...entry, name }, isTaken ? new Set() : known, this.names, true).key)
      if (!view || typeof createdAt !== 'string') throw new RelayError('bad-request', `the entry ${quoted(name)} has no created_at`)
      views.set(name, { ...view, createdAt })
      if (isTaken) continue
      const add = (digest: Buffer, caller: Caller, more: Partial<Key>): void => {
        const text = digest.toString('hex')
        const known = this.callers.get(text) ?? caller
        callers.set(text, known)
        keys.push({ ...fresh, ...more, digest, caller: known })
      }
      // If another relay removed the key and made it again, the former rights do not apply.
      const isRotated = this.views.get(name)?.createdAt === createdAt
      const caller = (isRotated ? former.get(name)?.successor() : undefined) ?? fresh.caller
      add(fresh.digest, caller, { view })
      const { key: digits, secret, until } = fieldsOf(previous)
      const end = parseExpiry(until)
      if (end !== undefined) add(digestIn(digits), caller.successor(), { secrets: typeof secret === 'string' ? [secret] : [], expires: Math.min(fresh.expires, end) })
    }
    return () => {
      for (const [digest, caller] of this.callers) if (!callers.has(digest)) caller.revoke()
      this.callers = callers
      this.views = views
      this.access.replaceMade(keys)
    }
  }

  /** Whether the settings have the key or the secret of an entry. */
  private isFixed(entry: JsonObject): boolean {
    return digestsOf(entry).some(digest => this.fixedDigests.has(digest))
  }

  /** Whether a text is a key or a secret, even a replaced one. Compares every digest, so that the time reveals nothing about them. */
  private isUsed(secret: string, content: JsonObject): boolean {
    const entries = Object.values(content).map(fieldsOf)
    const used = [...this.fixedDigests, ...entries.flatMap(entry => [...digestsOf(entry), ...digestsOf(fieldsOf(entry.previous))])]
    const given = sha256(secret).toString('hex')
    return used.filter(digest => equalsSecret(digest, given)).length > 0
  }
}

function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

/** The digest of a key, as written in entries. */
function digestOf(key: string): string {
  return `sha256:${sha256(key).toString('hex')}`
}

/** The digests of the key and the secret of an entry, in hexadecimal. */
function digestsOf({ key, secret }: JsonObject): string[] {
  return [digestIn(key), ...typeof secret === 'string' ? [sha256(secret.trim())] : []].map(digest => digest.toString('hex'))
}

function digestIn(text: unknown): Buffer {
  return Buffer.from(String(text).replace(/^sha256:/, ''), 'hex')
}
