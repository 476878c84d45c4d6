import { stat } from 'node:fs/promises'
import type { Store } from '../relay/store/store'
import { streamFile } from './files'
import { route, type Route } from './routes'

/**
 * `GET /backup`: a copy of the relay's file, which holds API keys and messages.
 *
 * @param store returns the present store
 */
export function backupRoute(store: () => Store): Route {
  return route('GET', '/backup', ['admin'], async exchange => {
    const backup = await store().backup()
    try {
      const { size } = await stat(backup.path)
      const name = `relay-${new Date().toISOString().slice(0, 19).replaceAll(':', '-')}Z.db`
      await streamFile(exchange, backup.path, { type: 'application/vnd.sqlite3', size, name })
    } finally {
      await backup.done()
    }
    return 'sent' as const
  // Without HEAD, which would make a copy, too.
  }, { methods: () => ['GET'] })
}
