import type { Caller } from '../access/caller'
import { RelayError } from '../errors'
import { route, type Route } from '../http/routes'
import type { JsonObject } from '../lib/shape'
import type { HookRequest } from './source'

/** The largest payload that is kept, in bytes. */
const maxSize = 64 * 1024

/** The most sources whose payloads are kept: anybody with a key may name sources. */
const maxSources = 50

/** The last payload posted to a source. */
interface LastPayload {
  /** In milliseconds since the epoch. */
  readonly at: number
  /** The name of the caller's key, `null` for the master key. */
  readonly caller: string | null
  /** Absent if it is too large. */
  readonly payload: JsonObject | undefined
  /** The name for `?events=`; absent if the source skipped the payload. */
  event?: string
}

/**
 * The last payload of each source, in memory only, to try templates with real data. Nothing else of a request is kept, because headers
 * and keys are credentials.
 */
export class LastPayloads {
  private readonly last = new Map<string, LastPayload>()

  /** @param isKept whether to keep payloads at all */
  constructor(private readonly isKept: boolean) {}

  /** Replaces the payload of a source, and forgets that of the source that has been silent for longest if there are too many. */
  keep(source: string, caller: string | null, { raw, payload }: HookRequest): LastPayload {
    // There are no raw bytes if the payload was in the query.
    const size = raw.length || Buffer.byteLength(JSON.stringify(payload))
    // Gitee repeats its secret in the payload.
    const entry = { at: Date.now(), caller, payload: size <= maxSize ? { ...payload, password: undefined, sign: undefined } : undefined }
    if (!this.isKept) return entry
    this.last.delete(source)
    this.last.set(source, entry)
    const [oldest] = this.last.keys()
    if (oldest !== undefined && this.last.size > maxSources) this.last.delete(oldest)
    return entry
  }

  /** The last payload of a source. */
  of(source: string): LastPayload | undefined {
    return this.last.get(source)
  }

  /** `GET /payloads`: the sources that have posted, the newest first. `GET /payloads/<source>`: the last payload of a source. */
  routes(): Route[] {
    return [
      route('GET', '/payloads', ['read', 'manage'], ({ caller }) => ({
        data: { payloads: [...this.last].reverse().flatMap(([source, entry]) => isFor(caller, entry) ? describe(source, entry) : []) },
      })),
      route('GET', '/payloads/:source', ['read', 'manage'], ({ params: { source = '' }, caller }) => {
        const entry = this.last.get(source)
        if (entry && isFor(caller, entry)) return { data: { ...describe(source, entry), payload: entry.payload } }
        // The same text for every reason, so that it does not reveal the payload of another key.
        const reasons = 'none has come since the relay was loaded, or the last was larger than 64 KiB, or the setting recordContent is none'
        throw new RelayError('not-found', `no payload of this source is kept: ${reasons}`, { logText: 'no payload of this source is kept' })
      }),
    ]
  }
}

function isFor({ confinedTo }: Caller, { caller, payload }: LastPayload): boolean {
  return payload !== undefined && (confinedTo === undefined || caller === confinedTo)
}

function describe(source: string, { at, caller, event }: LastPayload): JsonObject {
  const known = { ...caller !== null && { key_name: caller }, ...event !== undefined && { event } }
  return { source, received_at: new Date(at).toISOString(), ...known }
}
