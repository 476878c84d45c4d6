import { RelayError } from '../errors'
import type { GuardedRoute } from '../http/routes'
import type { JsonObject } from '../message/parse'
import type { HookRequest } from './source'

/** The largest payload that is kept, in bytes. */
const maxSize = 64 * 1024

/** What a source was posted. */
export interface LastPayload {
  /** In milliseconds since the epoch. */
  readonly at: number
  /** The name of the key that it came with, `null` for the master key. */
  readonly caller: string | null
  /** Absent where it is too large to be kept. */
  readonly payload: JsonObject | undefined
  /** What `?events=` goes by; absent as long as nobody could tell. */
  event?: string
}

/**
 * The payload that came last from each source, so that a template can be tried with a real one. It is in memory only, as long as this is.
 * Nothing else of a request is kept: headers and keys prove who somebody is.
 */
export class LastPayloads {
  private readonly last = new Map<string, LastPayload>()

  /** @param isKept whether any is */
  constructor(private readonly isKept: boolean) {}

  /** Keeps one in the place of that before. There are as many as there are sources, so only known ones may be named. */
  keep(source: string, caller: string | null, { raw, payload }: HookRequest): LastPayload {
    // What came in a query, or was read by another plugin, is not there as bytes.
    const size = raw.length || Buffer.byteLength(JSON.stringify(payload))
    const entry = { at: Date.now(), caller, payload: size <= maxSize ? payload : undefined }
    if (this.isKept) this.last.set(source, entry)
    return entry
  }

  /** @param confinedTo the only key whose payloads are shown; all of them unless given */
  get(source: string, confinedTo: string | undefined): LastPayload | undefined {
    const found = this.last.get(source)
    return confinedTo === undefined || found?.caller === confinedTo ? found : undefined
  }
}

/** `GET /payloads/<source>`: what came last from a source, for trying its template. */
export function payloadRoute(payloads: LastPayloads): GuardedRoute {
  return {
    path: '/payloads/:source',
    method: 'GET',
    allow: ['read', 'manage'],
    handle({ params, caller }) {
      const { source = '' } = params
      const { at, caller: name, event, payload } = payloads.get(source, caller.confinedTo) ?? {}
      if (at === undefined || payload === undefined) throw notKept()
      return {
        data: {
          source, received_at: new Date(at).toISOString(), ...typeof name === 'string' && { key_name: name }, ...event !== undefined && { event }, payload,
        },
      }
    },
  }
}

/** In the same words whatever the reason, for one may be that there is one of somebody else. */
function notKept(): RelayError {
  const reasons = 'none has come since the relay was loaded, or the last was larger than 64 KiB, or the setting recordContent is none'
  return new RelayError('not-found', `no payload of this source is kept: ${reasons}`, { logText: 'no payload of this source is kept' })
}
