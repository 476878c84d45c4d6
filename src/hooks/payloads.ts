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
  private emptied: Store | undefined

  /**
   * @param store returns the present store
   * @param isKept whether to keep payloads at all
   */
  constructor(private readonly store: () => Store, private readonly isKept: boolean) {}

  /** Removes what was kept before the setting changed, as soon as the store is open: to be called now and then. */
  tidy(): void {
    const store = this.store()
    if (this.isKept || store === this.emptied || store.failure) return
    try {
      store.commit(writer => writer.run('DELETE FROM payloads'))
      this.emptied = store
    } catch {
      // The store tells why it cannot write. The next call is another try.
    }
  }

  /**
   * Replaces the payload of a source, and forgets that of the source that has been silent for longest if there are too many. Keeps nothing
   * if it is too large, or the store cannot take it.
   */
  keep(source: string, { raw, payload }: HookRequest, { caller, event }: Pick<LastPayload, 'caller' | 'event'>): void {
    this.tidy()
    const store = this.store()
    if (!this.isKept || store.failure || store.isFull) return
    // There are no raw bytes if the payload was in the query.
    const size = raw.length || Buffer.byteLength(JSON.stringify(payload))
    // Gitee repeats its secret in the payload.
    const entry = JSON.stringify({ caller, event, payload: { ...payload, password: undefined, sign: undefined } })
    try {
      store.commit(writer => {
        writer.run('DELETE FROM payloads WHERE source = ?', source)
        if (size > maxSize) return
        writer.run('INSERT INTO payloads (source, at, entry) VALUES (?, ?, ?)', source, Date.now(), entry)
        writer.run('DELETE FROM payloads WHERE rowid NOT IN (SELECT rowid FROM payloads ORDER BY rowid DESC LIMIT ?)', maxSources)
      })
    } catch {
      // The event itself matters more. The store tells why it cannot write.
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
