import { RelayError } from '../errors'
import { readBody, type BodyLimits, type Received } from '../http/body'
import { onAbort } from '../lib/async'
import { say } from '../texts/text'

/** The limit for all bodies together, in bytes. */
const maxTotal = 32 * 1024 * 1024

/**
 * The bodies of requests before their signatures, or the keys in them, are checked. Anyone can send one, because that takes the whole body,
 * so their total size is limited. Beyond the limit the oldest body is dropped, because an honest sender needs only a moment.
 */
export class UnprovenBodies {
  /** How many bytes of each body have arrived, the oldest body first. */
  private readonly arriving = new Map<AbortController, number>()
  private total = 0

  /**
   * Reads a whole body.
   *
   * @throws RelayError those of `readBody`; `too-slow`, with 503, if the body was dropped
   */
  async read({ request, body, stop }: Received, { maxSize, ...limits }: BodyLimits): Promise<Buffer> {
    const giveUp = new AbortController()
    const unwatch = onAbort(stop, () => giveUp.abort(stop.reason))
    const count = ({ length }: Buffer): void => this.add(giveUp, length)
    this.arriving.set(giveUp, 0)
    request.on('data', count)
    try {
      return await readBody({ request, body, stop: giveUp.signal }, { ...limits, maxSize: Math.min(maxSize, maxTotal) })
    } finally {
      request.off('data', count)
      unwatch()
      this.leave(giveUp)
    }
  }

  private add(body: AbortController, length: number): void {
    const size = this.arriving.get(body)
    if (size === undefined) return
    this.arriving.set(body, size + length)
    this.total += length
    for (const oldest of this.arriving.keys()) {
      if (this.total <= maxTotal) return
      this.leave(oldest)
      oldest.abort(new RelayError('too-slow', say('too-many-unproven'), { status: 503 }))
    }
  }

  private leave(body: AbortController): void {
    this.total -= this.arriving.get(body) ?? 0
    this.arriving.delete(body)
  }
}
