import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, isAbsolute, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ActionFailure, executionError } from './answers'
import { fetchLink, isFetchable, type Digest } from './fetch'
import type { Profile } from './profiles'
import { Ring } from './ring'
import type { MediaForm } from './types'

/** How many inline bytes are kept for the page. */
const byteBudget = 64 * 1024 * 1024

/** Where the bytes of a medium can be read again. */
export type Content = { kind: 'path', path: string } | { kind: 'bytes', bytes: Buffer } | { kind: 'link', url: string }

/** A medium whose bytes have been read. Size and hash are null for a link that must not be fetched. */
export interface Opened { name: string, size: number | null, sha256: string | null, source: MediaForm, content: Content }

/** A medium that the page can show. */
export interface StoredMedium { name: string, content: Exclude<Content, { kind: 'link' }> }

/** The form of a file reference, or null if it is none. */
function formOf(source: string): MediaForm | null {
  if (/^https?:\/\//i.test(source)) return 'http'
  if (/^file:\/\//i.test(source)) return 'file'
  if (source.startsWith('base64://')) return 'base64'
  if (/^data:[^,]*,/.test(source)) return 'data'
  return isAbsolute(source) ? 'path' : null
}

/**
 * The media of a platform. They are opened as the implementation does it, downloaded to the platform's own disk, and kept for the page:
 * inline bytes in memory, files as their paths. The oldest make room for new ones.
 */
export class Media {
  private readonly aborter = new AbortController()
  private readonly signal = this.aborter.signal
  /** The folder of downloads, accessible even if the disk is not shared. It is created when it is first needed. */
  private ownFolder: string | null = null
  private making: Promise<string> | null = null
  private downloads = 0
  private readonly kept = new Map<number, StoredMedium>()
  private readonly paths: Ring<number>
  private readonly bytes: Ring<number>
  /** Starts at the time, so that a restarted simulator does not reuse an address: browsers cache pictures. */
  private last = Date.now()

  constructor(private readonly profile: Profile, private readonly sharedDisk: boolean, keep: number) {
    const drop = (key: number): void => {
      this.kept.delete(key)
    }
    this.paths = new Ring<number>(keep === 0 ? 1_000_000 : keep, Infinity, drop)
    this.bytes = new Ring<number>(keep === 0 ? 1_000_000 : keep, byteBudget, drop)
  }

  /**
   * Reads a medium completely.
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

  /**
   * Saves a link on this machine, or `base64://`, to a file; resolves to its path.
   * @throws ActionFailure with the profile's execution error
   */
  async download(source: string, name: string | null): Promise<string> {
    try {
      const isLink = formOf(source) === 'http'
      const path = await this.place(name ?? (isLink ? nameOfLink(source) : 'download'))
      if (isLink) await fetchLink(source, this.signal, path)
      else await writeFile(path, bytesOf(source))
      return path
    } catch (error) {
      throw executionError(this.profile, error instanceof Error ? error.message : String(error))
    }
  }

  /** Keeps a medium for the page. Returns its number, or its link if it has one. */
  keep({ name, content }: Opened): number | string {
    if (content.kind === 'link') return content.url
    const key = ++this.last
    this.kept.set(key, { name, content })
    if (content.kind === 'path') this.paths.push(key)
    else this.bytes.push(key, content.bytes.length)
    return key
  }

  get(key: number): StoredMedium | undefined {
    return this.kept.get(key)
  }

  /** Aborts reads in progress and removes downloads. */
  async close(): Promise<void> {
    this.aborter.abort()
    if (this.making !== null) await rm(await this.making, { recursive: true, force: true })
  }

  /** A path for a new file. */
  private async place(name: string): Promise<string> {
    this.making ??= mkdtemp(join(tmpdir(), 'onebot-simulator-'))
    this.ownFolder = await this.making
    // Numbered, so that equal names do not collide. Without separators, so that the path stays inside the folder.
    return join(this.ownFolder, `${++this.downloads}-${name.replace(/[^\p{L}\p{N}._-]/gu, '_').slice(-100)}`)
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
        const bytes = form === 'base64' ? bytesOf(source) : decodeDataUrl(source)
        const sha256 = createHash('sha256').update(bytes).digest('hex')
        return { size: bytes.length, sha256, name: name ?? sha256.slice(0, 32), source: form, content: { kind: 'bytes', bytes } }
      }
    }
  }

  private locate(source: string, form: 'file' | 'path'): string {
    // NapCat also percent-decodes bare paths, so that a real `%` leads elsewhere or is malformed.
    const path = form === 'file' ? fileURLToPath(source) : this.profile.decodesPaths ? decodeURIComponent(source) : source
    if (this.sharedDisk || (this.ownFolder !== null && path.startsWith(this.ownFolder + sep))) return path
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

function bytesOf(base64: string): Buffer {
  return Buffer.from(base64.slice('base64://'.length), 'base64')
}

function decodeDataUrl(url: string): Buffer {
  const comma = url.indexOf(',')
  const body = url.slice(comma + 1)
  return /;base64$/i.test(url.slice(0, comma)) ? Buffer.from(body, 'base64') : Buffer.from(decodeURIComponent(body))
}

/**
 * The last part of a link's path, as a file name.
 * @throws TypeError if the text is not a link
 */
function nameOfLink(link: string): string {
  const last = new URL(link).pathname.split('/').at(-1) ?? ''
  try {
    return decodeURIComponent(last) || 'download'
  } catch {
    return last
  }
}
