import type { Caller } from '../access/caller'
import { RelayError } from '../errors'
import { route, type Route } from '../http/routes'
import { parseJson } from '../lib/json'
import { isNumber, isObject, isString, nullable, objectOf, optional, type JsonObject } from '../lib/shape'
import type { Store } from '../relay/store/store'
import { say } from '../texts/text'
import type { HookRequest } from './source'

/** The largest payload that is kept, in bytes. */
const maxSize = 64 * 1024

/** The most sources whose payloads are kept: anybody with a key may name sources. */
const maxSources = 50

/** The last payload posted to a source. */
interface LastPayload {
  readonly source: string
  /** In milliseconds since the epoch. */
  readonly at: number
  /** The name of the caller's key, `null` for the master key. */
  readonly caller: string | null
  /** The name for `?events=`; absent if the source skipped the payload, or could not read it. */
  readonly event?: string | undefined
  readonly payload: JsonObject
}

const isEntry = objectOf<Omit<LastPayload, 'source' | 'at'>>({ caller: nullable(isString), event: optional(isString), payload: isObject })
const isRow = objectOf({ source: isString, at: isNumber, entry: isString })

/**
 * The last payload of each source, to try templates with real data. Nothing else of a request is kept, because headers and keys are
 * credentials.
 */
export class LastPayloads {
  /** What came since the last write, the newest last; `undefined` if it is too large. A source may post hundreds of times a second. */
  private readonly fresh = new Map<string, Omit<LastPayload, 'source'> | undefined>()
  /** The store from which all was removed, where nothing is kept. */
  private emptied: Store | undefined

  /**
   * @param store returns the present store
   * @param isKept whether to keep payloads at all
   */
  constructor(private readonly store: () => Store, private readonly isKept: boolean) {}

  /** Replaces the payload of a source. */
  keep(source: string, { raw, payload }: HookRequest, { caller, event }: Pick<LastPayload, 'caller' | 'event'>): void {
    if (!this.isKept) return
    // There are no raw bytes if the payload was in the query.
    const size = raw.length || Buffer.byteLength(JSON.stringify(payload))
    this.fresh.delete(source)
    this.fresh.set(source, size > maxSize ? undefined : { at: Date.now(), caller, event, payload })
    const [oldest = ''] = this.fresh.keys()
    if (this.fresh.size > maxSources) this.fresh.delete(oldest)
  }

  /**
   * Writes what came since the last call, and forgets the sources that have been silent for longest if there are too many. Or removes what
   * was kept before the setting changed. To be called each second.
   */
  write(): void {
    const store = this.store()
    const isDone = this.isKept ? this.fresh.size === 0 || store.isFull : store === this.emptied
    if (isDone || store.failure) return
    try {
      store.commit(writer => {
        if (!this.isKept) writer.run('DELETE FROM payloads')
        for (const [source, post] of this.fresh) {
          writer.run('DELETE FROM payloads WHERE source = ?', source)
          if (!post) continue
          const { at, caller, event, payload } = post
          // Gitee repeats its secret in the payload.
          const entry = JSON.stringify({ caller, event, payload: { ...payload, password: undefined, sign: undefined } })
          writer.run('INSERT INTO payloads (source, at, entry) VALUES (?, ?, ?)', source, at, entry)
        }
        writer.run('DELETE FROM payloads WHERE rowid NOT IN (SELECT rowid FROM payloads ORDER BY rowid DESC LIMIT ?)', maxSources)
      })
      if (!this.isKept) this.emptied = store
      this.fresh.clear()
    } catch {
      // The store tells why it cannot write. The next call is another try.
    }
  }

  /** The last payload of a source. @throws RelayError `store-down` */
  of(source: string): LastPayload | undefined {
    return this.read('WHERE source = ?', source)[0]
  }

  /** `GET /payloads`: the sources that have posted, the newest first. `GET /payloads/<source>`: the last payload of a source. */
  routes(): Route[] {
    return [
      route('GET', '/payloads', ['read', 'manage'], ({ caller }) => ({
        data: { payloads: this.read('ORDER BY rowid DESC').filter(each => isFor(caller, each)).map(describe) },
      })),
      route('GET', '/payloads/:source', ['read', 'manage'], ({ params: { source = '' }, caller }) => {
        const found = this.of(source)
        if (found && isFor(caller, found)) return { data: { ...describe(found), payload: found.payload } }
        // The same text for every reason, so that it does not reveal the payload of another key.
        throw new RelayError('not-found', say('no-payload'), { logText: say('no-payload-kept') })
      }),
    ]
  }

  private read(condition: string, ...values: readonly string[]): LastPayload[] {
    if (!this.isKept) return []
    this.write()
    return this.store().all(isRow, `SELECT source, at, entry FROM payloads ${condition}`, ...values).flatMap(({ source, at, entry }) => {
      const fields = parseJson(entry)
      return isEntry(fields) ? { source, at, ...fields } : []
    })
  }
}

function isFor({ confinedTo }: Caller, { caller }: LastPayload): boolean {
  return confinedTo === undefined || caller === confinedTo
}

function describe({ source, at, caller, event }: LastPayload): JsonObject {
  const known = { ...caller !== null && { key_name: caller }, ...event !== undefined && { event } }
  return { source, received_at: new Date(at).toISOString(), ...known }
}
