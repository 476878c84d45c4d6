import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, isAbsolute, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ActionFailure, executionError } from './answers'
import { fetchLink, isFetchable, type Digest } from './fetch'
import type { Profile } from './profiles'
import type { MediaForm } from './types'

/** Where the bytes of a medium are to be had again. */
export type Content = { kind: 'path', path: string } | { kind: 'bytes', bytes: Buffer } | { kind: 'link', url: string }

/** A medium whose bytes have been read. Size and hash are null for a link that must not be fetched. */
export interface Opened { name: string, size: number | null, sha256: string | null, source: MediaForm, content: Content }

/** The form in which a file is referred to, or null for none of them. */
function formOf(source: string): MediaForm | null {
  if (/^https?:\/\//i.test(source)) return 'http'
  if (/^file:\/\//i.test(source)) return 'file'
  if (source.startsWith('base64://')) return 'base64'
  if (/^data:[^,]*,/.test(source)) return 'data'
  return isAbsolute(source) ? 'path' : null
}

/** Opens media the way an implementation does, on its own disk. */
export class MediaOpener {
  /**
   * @param ownFolder where `download_file` puts files: found even when the disk is not shared
   * @param signal aborts what is being read
   */
  constructor(
    private readonly profile: Profile,
    private readonly sharedDisk: boolean,
    private readonly ownFolder: () => string | null,
    private readonly signal: AbortSignal,
  ) {}

  /**
   * Reads a medium to its end.
   * @throws ActionFailure with the profile's execution error
   */
  async open(source: string, use: keyof Profile['forms'], name: string | null): Promise<Opened> {
    const form = formOf(source)
    if (form === null || !this.profile.forms[use].includes(form)) {
      throw executionError(this.profile, `识别URL失败, uri= ${source.slice(0, 200)}`)
    }
    const opened = await this.read(source, form, name).catch((error: unknown) => {
      if (error instanceof ActionFailure) throw error
      throw executionError(this.profile, error instanceof Error ? error.message : String(error))
    })
    if (opened.size === 0 && this.profile.refusesEmptyFiles) throw executionError(this.profile, '文件异常，大小为0')
    return opened
  }

  private async read(source: string, form: MediaForm, name: string | null): Promise<Opened> {
    switch (form) {
      case 'http': {
        const fallback = nameOfLink(source)
        const digest = isFetchable(source) ? await fetchLink(source, this.signal) : { size: null, sha256: null }
        return { ...digest, name: name ?? fallback, source: form, content: { kind: 'link', url: source } }
      }
      case 'file':
      case 'path': {
        const path = this.locate(source, form)
        return { ...await this.readFile(path), name: name ?? basename(path), source: form, content: { kind: 'path', path } }
      }
      case 'base64':
      case 'data': {
        const bytes = form === 'base64' ? Buffer.from(source.slice('base64://'.length), 'base64') : decodeDataUrl(source)
        const sha256 = createHash('sha256').update(bytes).digest('hex')
        return { size: bytes.length, sha256, name: name ?? sha256.slice(0, 32), source: form, content: { kind: 'bytes', bytes } }
      }
    }
  }

  private locate(source: string, form: 'file' | 'path'): string {
    // NapCat percent-decodes bare paths too, so a real `%` in one leads elsewhere or is malformed.
    const path = form === 'file' ? fileURLToPath(source) : this.profile.decodesPaths ? decodeURIComponent(source) : source
    const own = this.ownFolder()
    if (this.sharedDisk || (own !== null && path.startsWith(own + sep))) return path
    throw new Error(`ENOENT: no such file or directory, stat '${path}'`)
  }

  private async readFile(path: string): Promise<Digest> {
    if (!(await stat(path)).isFile()) throw new Error(`${path} is not a file`)
    const hash = createHash('sha256')
    let size = 0
    const chunks: AsyncIterable<Buffer> = createReadStream(path, { signal: this.signal })
    for await (const chunk of chunks) {
      size += chunk.length
      hash.update(chunk)
    }
    return { size, sha256: hash.digest('hex') }
  }
}

function decodeDataUrl(url: string): Buffer {
  const comma = url.indexOf(',')
  const body = url.slice(comma + 1)
  return /;base64$/i.test(url.slice(0, comma)) ? Buffer.from(body, 'base64') : Buffer.from(decodeURIComponent(body))
}

/**
 * The last part of a link's path, as a file name.
 * @throws TypeError when it is no link
 */
export function nameOfLink(link: string): string {
  const last = new URL(link).pathname.split('/').at(-1) ?? ''
  try {
    return decodeURIComponent(last) || 'download'
  } catch {
    return last
  }
}
