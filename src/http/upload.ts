import type { UploadStore } from '../uploads/store'
import { receive, type ReceiveLimits } from '../uploads/receive'
import { RelayError } from '../errors'
import { refuseEncoding } from './body'
import type { Route } from './routes'

/** `POST /upload`: stores files (document, section 4; contract, "Uploads"). */
export function uploadRoute(store: UploadStore, limits: ReceiveLimits, stop: AbortSignal): Route {
  return {
    path: '/upload',
    method: 'POST',
    async handle(exchange) {
      if (exchange.parsedBody !== undefined) {
        throw new RelayError('internal', 'another plugin of the bot has read the upload: its catch-all route has to come after this one')
      }
      refuseEncoding(exchange.request)
      const files = await receive(exchange.request, store, limits, stop)
      exchange.outcome = `${files.length} stored`
      return { data: files.length === 1 ? { files, path: files[0] } : { files } }
    },
  }
}
