import { RelayError } from '../errors'
import { route, type Route } from '../http/routes'
import type { JsonObject } from '../lib/shape'
import type { HookRequest } from './source'

/** The largest payload that is kept, in bytes. */
const maxSize = 64 * 1024

/** What a source has posted. */
interface LastPayload {
  /** In milliseconds since the epoch. */
  readonly at: number
  /** The name of the key that it came with, `null` for the master key. */
  readonly caller: string | null
  /** Absent where it is too large to be kept. */
  readonly payload: JsonObject | undefined
  /** The name for `?events=`; absent where the payload makes no event. */
  event?: string
}

/**
 * The last payload of each source, so that a template can be tried with a real one. They are in memory only. Nothing else of a request is
 * kept: headers and keys authenticate callers.
 */
export class LastPayloads {
  private readonly last = new Map<string, LastPayload>()

  /** @param isKept whether payloads are kept at all */
  constructor(private readonly isKept: boolean) {}

  /** Replaces the payload of a source. There are as many payloads as sources, so the source must be a known one. */
  keep(source: string, caller: string | null, { raw, payload }: HookRequest): LastPayload {
    // A payload that came in a query, or was read by another plugin, is not there as bytes.
    const size = raw.length || Buffer.byteLength(JSON.stringify(payload))
    // Gitee repeats its secret in the payload.
    const entry = { at: Date.now(), caller, payload: size <= maxSize ? { ...payload, password: undefined, sign: undefined } : undefined }
    if (this.isKept) this.last.set(source, entry)
    return entry
  }

  /** The last payload of a source. */
  of(source: string): LastPayload | undefined {
    return this.last.get(source)
  }

  /** `GET /payloads/<source>`: the last payload of a source. */
  route(): Route {
    return route('GET', '/payloads/:source', ['read', 'manage'], ({ params: { source = '' }, caller: { confinedTo } }) => {
      const { at = 0, caller = null, event, payload } = this.last.get(source) ?? {}
      if (payload === undefined || (confinedTo !== undefined && caller !== confinedTo)) {
        // In the same words whatever the reason: one may be that the payload belongs to another key.
        const reasons = 'none has come since the relay was loaded, or the last was larger than 64 KiB, or the setting recordContent is none'
        throw new RelayError('not-found', `no payload of this source is kept: ${reasons}`, { logText: 'no payload of this source is kept' })
      }
      const known = { ...caller !== null && { key_name: caller }, ...event !== undefined && { event } }
      return { data: { source, received_at: new Date(at).toISOString(), ...known, payload } }
    })
  }
}
