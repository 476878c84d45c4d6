import { createHmac } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { OutgoingHttpHeaders } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { codeOf, RelayError } from '../errors'
import { equalsSecret } from '../lib/crypto'
import { hour } from '../lib/time'
import type { DataLink, MediaItem, UploadLink } from '../message/model'
import type { Relay } from '../relay/relay'
import { receive, type ReceiveLimits } from '../uploads/receive'
import type { StoredFile, UploadStore } from '../uploads/store'
import { say } from '../texts/text'
import { demandUnread } from './body'
import { octets, typeOfName } from './media-type'
import { route, type Exchange, type Route } from './routes'

/** `POST /upload`: stores files. A standby refuses them: the active relay, which would send them, may use another folder. */
export function uploadRoute(store: UploadStore, relay: Pick<Relay, 'active'>, limits: ReceiveLimits): Route {
  return route('POST', '/upload', ['upload'], async exchange => {
    await relay.active()
    demandUnread(exchange)
    const files = await receive(exchange.request, store, limits, exchange.stop)
    return { data: files.length === 1 ? { files, path: files[0] } : { files }, log: say('files-stored', { count: files.length }) }
  })
}

/** How long a link to an uploaded file is valid, in milliseconds: a platform fetches the file right after the send. */
const lifetime = hour

/** Signed links by which a platform fetches uploaded files. The signature replaces the API key, which a platform does not have. */
export class MediaLinks {
  private readonly key: Buffer

  /**
   * @param base returns the address of the plugin's paths, without a slash at its end
   * @param secret the key of the signatures is derived from it
   */
  constructor(private readonly base: () => string, secret: string) {
    this.key = createHmac('sha256', secret).update('media links').digest()
  }

  /**
   * Makes a link to a file, valid for an hour.
   *
   * @param now in milliseconds since the epoch
   */
  to({ id }: Pick<StoredFile, 'id'>, now = Date.now()): string {
    const expires = now + lifetime
    const path = id.split('/').map(encodeURIComponent).join('/')
    return `${this.base()}/media/${path}?expires=${expires}&signature=${this.sign(id, expires)}`
  }

  /**
   * Checks that a link with this query was signed for this file and has not expired.
   *
   * @param now in milliseconds since the epoch
   */
  isValid(id: string, query: URLSearchParams, now = Date.now()): boolean {
    const expires = Number(query.get('expires'))
    return equalsSecret(query.get('signature') ?? '', this.sign(id, expires)) && now < expires
  }

  /** HMAC-SHA256 in base64url. The line break ends the number, so that different pairs never make the same text. */
  private sign(id: string, expires: number): string {
    return createHmac('sha256', this.key).update(`${expires}\n${id}`).digest('base64url')
  }
}

/** `GET /media/<file ID>`: the bytes of an uploaded file, by a signed link. */
export function mediaRoute(store: UploadStore, links: MediaLinks): Route {
  return route('GET', '/media/:folder/:name', 'anyone', async exchange => {
    const { params, query } = exchange
    const id = `${params.folder ?? ''}/${params.name ?? ''}`
    if (!links.isValid(id, query)) {
      throw new RelayError('unauthorized', say('media-link-invalid'), { headers: { 'www-authenticate': 'Bearer' } })
    }
    await sendFile(exchange, id, store, octets)
    return 'sent' as const
  })
}

/**
 * Answers with the bytes of an item that the relay stores, with headers that keep a browser from running them.
 *
 * @throws RelayError `file-not-found`
 */
export async function sendBytes(exchange: Exchange, item: MediaItem, link: DataLink | UploadLink, store: UploadStore): Promise<void> {
  if (link.kind === 'upload') {
    await sendFile(exchange, link.id, store, harmless(typeOfName(link.id)))
    return
  }
  const { request, response } = exchange
  const bytes = Buffer.from(link.base64, 'base64')
  // Any picture type will do: browsers detect the real one from the bytes.
  const type = harmless(link.mediaType ?? (item.type === 'image' ? 'image/png' : octets))
  response.writeHead(200, headersOf({ type, size: bytes.length, name: item.name ?? item.type }))
  response.end(request.method === 'HEAD' ? undefined : bytes)
}

/** The type for a browser: only pictures, videos and sounds, and no SVG, which can contain a script. */
function harmless(type: string): string {
  return /^(?:image|video|audio)\/(?!svg)[a-z0-9.+-]{1,64}$/i.test(type) ? type : octets
}

async function sendFile(exchange: Exchange, id: string, store: UploadStore, type: string): Promise<void> {
  await store.use(id, ({ path, name, size }) => streamFile(exchange, path, { type, size, name }))
}

/** Answers with the bytes of a file. */
export async function streamFile(
  { request, response }: Exchange, path: string, file: { type: string, size: number, name: string },
): Promise<void> {
  response.writeHead(200, headersOf(file))
  try {
    // A read stream refuses an empty range.
    if (request.method === 'HEAD' || file.size === 0) response.end()
    else await pipeline(createReadStream(path, { end: file.size - 1 }), response)
  } catch (cause) {
    throw codeOf(cause) === 'ERR_STREAM_PREMATURE_CLOSE' ? new RelayError('bad-request', say('download-cut'), { cause }) : cause
  }
}

function headersOf({ type, size, name }: { type: string, size: number, name: string }): OutgoingHttpHeaders {
  return {
    'content-type': type,
    'content-length': size,
    'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(name)}`,
    'content-security-policy': 'sandbox; default-src \'none\'',
    'x-content-type-options': 'nosniff',
  }
}
