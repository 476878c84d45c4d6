import type { UploadStore } from '../uploads/store'
import { receive, type ReceiveLimits } from '../uploads/receive'
import { RelayError } from '../errors'
import type { Route } from './routes'

/** `POST /upload`: stores files (document, section 4; contract, "Uploads"). */
export function uploadRoute(store: UploadStore, limits: ReceiveLimits, stop: AbortSignal): Route {
  return {
    path: '/upload',
    method: 'POST',
    async handle(exchange) {
      if (exchange.parsedBody !== undefined) {
        throw new RelayError('internal', undefined, { cause: new Error('a catch-all route of another plugin has read the upload') })
      }
      const files = await receive(exchange.request, store, limits, stop)
      exchange.outcome = `${files.length} stored`
      return { data: files.length === 1 ? { files, path: files[0] } : { files } }
    },
  }
}
