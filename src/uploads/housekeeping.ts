import type { Context, Logger } from 'koishi'
import type { UploadStore } from './store'

/** How often expired uploads are looked for, in milliseconds (contract, "Uploads"). */
const interval = 10 * 60 * 1000

/** Removes expired uploads now and from time to time, until the plugin is disposed. */
export function scheduleSweeps(ctx: Context, store: UploadStore, logger: Logger): void {
  const lifetime = new AbortController()
  const run = async (): Promise<void> => {
    let first: unknown
    const { removed, failed } = await store.sweep(Date.now(), { signal: lifetime.signal, onError: error => first ??= error })
    if (removed > 0) logger.info('%s', `removed ${removed} expired uploads`)
    if (failed > 0) logger.warn('%s', `the upload directory could not be cleaned up, ${failed} failures, the first: ${String(first)}`)
  }
  ctx.on('dispose', () => {
    lifetime.abort()
  })
  ctx.setInterval(() => void run(), interval)
  void run()
}
