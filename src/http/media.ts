import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { RelayError } from '../errors'
import { sign, verify } from '../uploads/signature'
import type { StoredFile, UploadStore } from '../uploads/store'
import type { Route } from './routes'

/** How long a link to an uploaded file is good for, in milliseconds: a platform fetches it right after the send. */
const lifetime = 60 * 60 * 1000

/**
 * Makes links under which the platform fetches uploaded files; the signature in them is their key (contract, "Links").
 *
 * @param base the address of this plugin's paths, without a slash at its end
 * @param key secret of the signatures
 */
export function createLinker(base: () => string, key: Buffer): (file: StoredFile) => string {
  return ({ id }) => {
    const expires = Date.now() + lifetime
    const path = id.split('/').map(encodeURIComponent).join('/')
    return `${base()}/media/${path}?expires=${expires}&signature=${sign(id, expires, key)}`
  }
}

/** `GET /media/<file ID>`: the bytes of an uploaded file, for whoever holds a signed link. */
export function mediaRoute(store: UploadStore, key: Buffer): Route {
  return {
    path: '/media/:folder/:name',
    method: 'GET',
    open: true,
    async handle(exchange) {
      const { params, query, request, response } = exchange
      const id = `${params.folder ?? ''}/${params.name ?? ''}`
      if (!verify(id, Number(query.get('expires')), query.get('signature') ?? '', key, Date.now())) {
        throw new RelayError('unauthorized', 'this link has expired or was altered', { headers: { 'www-authenticate': 'Bearer' } })
      }
      const release = store.hold(id)
      try {
        const file = await store.resolve(id)
        response.writeHead(200, {
          'content-type': 'application/octet-stream',
          'content-length': file.size,
          'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(file.name)}`,
          'x-content-type-options': 'nosniff',
        })
        // A read stream takes no empty range.
        if (request.method === 'HEAD' || file.size === 0) response.end()
        else await pipeline(createReadStream(file.path, { end: file.size - 1 }), response).catch(toRelayError)
      } finally {
        release()
      }
      return 'sent' as const
    },
  }
}

function toRelayError(cause: unknown): never {
  const isGone = cause instanceof Error && 'code' in cause && cause.code === 'ERR_STREAM_PREMATURE_CLOSE'
  throw isGone ? new RelayError('bad-request', 'the connection ended before all of the file was sent', { cause }) : cause
}
