import { randomBytes } from 'node:crypto'
import { demand, RelayError } from '../errors'
import { equalsSecret, sha256 } from '../lib/crypto'
import type { Log } from '../lib/log'
import { fieldsOf, type JsonObject } from '../lib/shape'
import { isSet } from '../lib/words'
import type { TargetNames } from '../message/model'
import type { Store } from '../relay/store/store'
import { say } from '../texts/text'
import { parseExpiry } from './expiry'
import { parseEntry, type Key, type KeyView } from './keys'
import { Loaded } from './loaded'
import type { Usages } from './usage'

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

/** An entry with what was read from it. */
interface Entry {
  fields: JsonObject
  view: MadeKey
  /** The key, and the one that it has replaced while that is valid; none if the settings use the same name or key. */
  keys: readonly Key[]
}

/** The parts of the plugin that made keys need. */
export interface MadeKeysOptions {
  /** Returns the present store. */
  store: () => Store
  /** The master key and the keys of the settings: their names and secrets take precedence. */
  apiKey: string
  fixed: readonly Key[]
  /** The names of targets. */
  names: TargetNames
  usages: Usages
  logger: Pick<Log, 'warn'>
}

/** The keys that are made while the relay runs. Only the digest of a key is stored. */
export class MadeKeys {
  private readonly made: Loaded<Entry>
  private last: { entries: ReadonlyMap<string, Entry>, keys: readonly Key[] } | undefined
  private readonly fixedNames: ReadonlySet<string | null>
  private readonly fixedDigests: ReadonlySet<string>

  constructor(private readonly options: MadeKeysOptions) {
    const { store, apiKey, fixed, logger } = options
    this.fixedNames = new Set(fixed.map(({ caller }) => caller.name))
    const secrets = [apiKey, ...fixed.flatMap(key => key.secrets)].map(text => sha256(text))
    this.fixedDigests = new Set([...secrets, ...fixed.map(({ digest }) => digest)].map(digest => digest.toString('hex')))
    this.made = new Loaded(store, 'keys', (name, value) => this.read(name, fieldsOf(value)), logger)
  }

  /** The keys in force, the same list until they change, or why they cannot be read. */
  keys(): readonly Key[] | Error {
    const entries = this.made.tryGet()
    if (entries instanceof Error) return entries
    if (this.last?.entries !== entries) this.last = { entries, keys: [...entries.values()].flatMap(({ keys }) => keys) }
    return this.last.keys
  }

  /** All made keys, including those without effect because the settings use the same name or key; none while they cannot be read. */
  list(): MadeKey[] {
    const entries = this.made.tryGet()
    return entries instanceof Error ? [] : [...entries.values()].map(({ view }) => view)
  }

  /**
   * Makes a key.
   *
   * @param fields the fields of an entry of the setting `keys`, without `key`; with `signs`, a secret for signatures is made as well
   * @throws RelayError `bad-request`, which names the field; `conflict`, `store-down`, `storage-full`
   */
  async create({ signs = false, name: givenName, ...fields }: JsonObject): Promise<Secrets & { name: string }> {
    demand(!('key' in fields), say('key-left-out'))
    demand(typeof signs === 'boolean', say('signs-flag'))
    demand(!signs || !('secret' in fields), say('signs-or-secret'))
    const secrets: Secrets = { key: newSecret(), ...signs && { secret: newSecret() } }
    const entry = {
      ...fields, ...signs && { allow: fields.allow ?? ['hooks'], secret: secrets.secret }, key: digestOf(secrets.key),
    }
    const { view, caller, expires } = parseEntry({ ...entry, name: givenName }, new Set(), { names: this.options.names }).key
    demand(expires > Date.now(), say('expires-is-over'))
    const name = view?.name ?? ''
    demand(namePattern.test(name), say('key-name-rule'))
    demand(!(signs || isSet(fields.secret)) || caller.may('hooks'), say('secret-needs-hooks'))
    const entries = this.made.get()
    if (this.fixedNames.has(name) || entries.has(name)) throw new RelayError('conflict', say('key-exists'))
    if (typeof fields.secret === 'string' && this.isUsed(fields.secret.trim())) throw new RelayError('conflict', say('secret-exists'))
    if (entries.size >= maxKeys) throw new RelayError('conflict', say('too-many-keys', { most: maxKeys }))
    await this.write(name, { ...entry, created_at: new Date().toISOString() })
    return { ...secrets, name }
  }

  /**
   * Replaces a key, and its secret if it has one. The rights stay the same.
   *
   * @param grace for how long the old key and its secret stay valid, in seconds; 0 by default
   * @throws RelayError `bad-request`, `not-found`, `conflict`, `store-down`, `storage-full`
   */
  async rotate(name: string, grace: unknown = 0): Promise<Secrets> {
    demand(typeof grace === 'number' && grace >= 0 && grace <= maxGrace, say('grace-rule', { most: maxGrace }))
    const before = this.find(name)
    const { fields, view: { expires = Infinity } } = before
    if (expires <= Date.now()) throw new RelayError('conflict', say('expired-on-rotation'))
    const secrets: Secrets = { key: newSecret(), ...isSet(fields.secret) && { secret: newSecret() } }
    const { key, secret } = fields
    const previous = grace > 0 ? { key, secret, until: new Date(Date.now() + grace * 1000).toISOString() } : undefined
    await this.write(name, { ...fields, ...secrets, key: digestOf(secrets.key), previous }, before)
    return secrets
  }

  /** @throws RelayError `not-found`, `conflict`, `store-down`, `storage-full` */
  async remove(name: string): Promise<void> {
    const { keys } = this.find(name)
    const removed = this.made.change(name, undefined)
    for (const { caller } of keys) caller.revoke()
    if (!this.fixedNames.has(name)) this.options.usages.forget(name)
    await removed
  }

  /** @throws RelayError `not-found`, `conflict`, `store-down` */
  private find(name: string): Entry {
    const found = this.made.get().get(name)
    if (found) return found
    if (this.fixedNames.has(name)) throw new RelayError('conflict', say('key-is-fixed'))
    throw new RelayError('not-found', say('no-such-key'))
  }

  /** Writes an entry. Callers whose key it no longer has may do nothing more, also in requests in flight. */
  private async write(name: string, fields: JsonObject, before?: Entry): Promise<void> {
    const entry = this.read(name, fields, before)
    const written = this.made.change(name, { json: fields, entry })
    const callers = new Set(entry.keys.map(({ caller }) => caller))
    for (const { caller } of before?.keys ?? []) if (!callers.has(caller)) caller.revoke()
    await written
  }

  /**
   * Reads an entry.
   *
   * @param before the entry that it replaces: its key keeps its caller, and the new one shares the rate
   * @throws RelayError `bad-request`
   */
  private read(name: string, fields: JsonObject, before?: Entry): Entry {
    const { previous, created_at: createdAt, ...entry } = fields
    const { names, usages } = this.options
    const { view, ...fresh } = parseEntry({ ...entry, name }, new Set(), { names, usages, acceptsAnyName: true }).key
    demand(view !== undefined && typeof createdAt === 'string', say('no-created-at'))
    const made = { fields, view: { ...view, createdAt } }
    // The settings may have a key of the same name, or the same key under another name.
    if (this.fixedNames.has(name) || digestsOf(entry).some(digest => this.fixedDigests.has(digest))) return { ...made, keys: [] }
    const caller = before?.keys[0]?.caller.successor() ?? fresh.caller
    const keys: Key[] = [{ ...fresh, caller }]
    const { key, secret, until } = fieldsOf(previous)
    const end = parseExpiry(until)
    if (end !== undefined) {
      const digest = digestIn(key)
      const former = before?.keys.find(each => each.digest.equals(digest))?.caller ?? caller.successor()
      keys.push({ ...fresh, digest, secrets: typeof secret === 'string' ? [secret] : [], expires: Math.min(fresh.expires, end), caller: former })
    }
    return { ...made, keys }
  }

  /** Whether a text is a key or a secret, even a replaced one. Compares every digest, so that the time reveals nothing about them. */
  private isUsed(secret: string): boolean {
    const entries = [...this.made.get().values()].map(({ fields }) => fields)
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
