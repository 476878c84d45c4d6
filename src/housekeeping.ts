import type { Context, Logger } from 'koishi'
import type { UploadStore } from './uploads/store'

/** How often expired uploads are looked for, in milliseconds (contract, "Uploads"). */
const interval = 10 * 60 * 1000

/** Removes expired uploads now and from time to time, until the plugin is disposed. */
export function scheduleSweeps(ctx: Context, store: UploadStore, logger: Logger): void {
  const lifetime = new AbortController()
  const run = async (): Promise<void> => {
    try {
      const { removed, failed } = await store.sweep(Date.now(), { signal: lifetime.signal })
      if (removed > 0) logger.info('%s', `removed ${removed} expired uploads`)
      if (failed > 0) logger.warn('%s', `${failed} expired uploads could not be removed: check the rights on the upload directory`)
    } catch (error) {
      if (!lifetime.signal.aborted) logger.warn(error)
    }
  }
  ctx.on('dispose', () => {
    lifetime.abort()
  })
  ctx.setInterval(() => void run(), interval)
  void run()
}
