import type { Content } from './media'
import { Ring } from './ring'

const byteBudget = 64 * 1024 * 1024

/** A medium the page can show, by number. */
export interface StoredMedium { name: string, content: Exclude<Content, { kind: 'link' }> }

/** What was sent, for the page: files by their path, inline bytes up to 64 MiB in all. The oldest make room. */
export class MediaStore {
  private readonly media = new Map<number, StoredMedium>()
  private readonly paths: Ring<number>
  private readonly bytes: Ring<number>
  /** Counted from the time: browsers keep pictures, so that a simulator that is restarted must not give an address again. */
  private last = Date.now()

  constructor(keep: number) {
    const drop = (key: number): void => {
      this.media.delete(key)
    }
    this.paths = new Ring<number>(keep === 0 ? 1_000_000 : keep, Infinity, drop)
    this.bytes = new Ring<number>(keep === 0 ? 1_000_000 : keep, byteBudget, drop)
  }

  /** Where a medium is to be had: its number here, or the link itself. */
  add(name: string, content: Content): number | string {
    if (content.kind === 'link') return content.url
    const key = ++this.last
    this.media.set(key, { name, content })
    if (content.kind === 'path') this.paths.push(key)
    else this.bytes.push(key, content.bytes.length)
    return key
  }

  get(key: number): StoredMedium | undefined {
    return this.media.get(key)
  }
}
