import fs from 'node:fs'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Syncer } from '../../src/relay/store/workers'
import type { Random } from './random'

/** What a disk writes as a whole, in bytes. */
const blockSize = 512

/** Bytes that can be written at any place. */
class Bytes {
  private space: Buffer = Buffer.alloc(1 << 20)

  constructor(private size = 0) {}

  get content(): Buffer {
    return this.space.subarray(0, this.size)
  }

  block(block: number): Buffer {
    return this.content.subarray(block * blockSize, (block + 1) * blockSize)
  }

  write(data: Uint8Array, at: number): void {
    const end = at + data.length
    if (end > this.space.length) this.space = Buffer.concat([this.space], 2 * end)
    this.space.set(data, at)
    this.size = Math.max(this.size, end)
  }

  truncate(size: number): void {
    this.space.fill(0, size)
    this.size = size
  }

  copy(): Bytes {
    const copy = new Bytes()
    copy.write(this.content, 0)
    return copy
  }
}

/** A file as its users see it, and what of it is on the disk for certain. */
class TrackedFile {
  private readonly now = new Bytes()
  private durable: Bytes
  /** The blocks that were written since they were last synced, with the number of the write. */
  private readonly dirty = new Map<number, number>()
  private writes = 0
  private syncs = 0

  /** @param content what is on the disk already */
  constructor(content: Uint8Array) {
    this.now.write(content, 0)
    this.durable = this.now.copy()
  }

  write(data: Uint8Array, at: number): void {
    this.now.write(data, at)
    this.writes++
    for (let block = Math.floor(at / blockSize); block * blockSize < at + data.length; block++) this.dirty.set(block, this.writes)
  }

  truncate(size: number): void {
    this.now.truncate(size)
    for (const block of this.dirty.keys()) if (block * blockSize >= size) this.dirty.delete(block)
  }

  /** Everything is on the disk. */
  sync(): void {
    this.durable = this.now.copy()
    this.dirty.clear()
    this.syncs++
  }

  /** A sync begins. @returns what to call when it has succeeded: what was written until now is on the disk then */
  beginSync(): () => void {
    const { now, writes, syncs } = this
    const blocks = [...this.dirty.keys()].map(block => ({ block, data: Buffer.from(now.block(block)) }))
    return () => {
      // Another sync had everything.
      if (syncs !== this.syncs) return
      for (const { block, data } of blocks) {
        this.durable.write(data, block * blockSize)
        if ((this.dirty.get(block) ?? 0) <= writes) this.dirty.delete(block)
      }
    }
  }

  /** What may be on the disk after a power cut: some of the blocks that were not synced, or those before some point. */
  cut(random: Random): Buffer {
    const blocks = [...this.dirty.keys()].sort((a, b) => a - b)
    const share = random.pick([0, 0.1, 0.5, 0.9, 1])
    const kept = random.chance(0.5) ? blocks.slice(0, random.between(0, blocks.length)) : blocks.filter(() => random.chance(share))
    const disk = this.durable.copy()
    for (const block of kept) disk.write(this.now.block(block), block * blockSize)
    return disk.content
  }
}

/** The database of a folder after a power cut. */
export class Image {
  constructor(private readonly files: ReadonlyMap<string, Buffer>) {}

  /** Writes the files into a folder, which is created. */
  writeTo(folder: string): void {
    mkdirSync(folder, { recursive: true })
    for (const [name, content] of this.files) writeFileSync(join(folder, name), content)
  }
}

/** Watches what this process writes into the database of a folder, and when that is synced. */
export class Disk {
  private readonly files: ReadonlyMap<string, TrackedFile>
  private readonly open = new Map<number, TrackedFile>()
  private readonly restore: (() => void)[] = []

  /**
   * @param countsSyncs whether the store's own syncs have an effect; without, what it acknowledged gets lost
   * @param atCheckpoint called before each write and sync of the file itself, which happen within checkpoints
   */
  constructor(folder: string, countsSyncs: boolean, atCheckpoint: () => void) {
    const database = join(folder, 'relay.db')
    this.files = new Map([database, `${database}-wal`].map(path => [path, new TrackedFile(existsSync(path) ? readFileSync(path) : Buffer.of())]))
    const main = this.files.get(database)
    const { open } = this
    this.wrap(fs, 'openSync', (call, [path]) => {
      const descriptor = call()
      const file = this.files.get(String(path))
      if (file && typeof descriptor === 'number') open.set(descriptor, file)
      return descriptor
    })
    this.wrap(fs, 'closeSync', (call, [descriptor]) => {
      open.delete(Number(descriptor))
      return call()
    })
    // SQLite removes a log that it has emptied.
    this.wrap(fs, 'unlinkSync', (call, [path]) => {
      const file = this.files.get(String(path))
      file?.truncate(0)
      file?.sync()
      return call()
    })
    const onFile = (method: keyof typeof fs, effect: (file: TrackedFile, args: unknown[]) => void): void => {
      this.wrap(fs, method, (call, args) => {
        const file = open.get(Number(args[0]))
        if (file && file === main) atCheckpoint()
        const result = call()
        if (file) effect(file, args)
        return result
      })
    }
    onFile('writeSync', (file, [, data, offset, length, at]) => {
      if (!(data instanceof Uint8Array)) throw new Error('the library writes otherwise than expected')
      file.write(data.subarray(Number(offset), Number(offset) + Number(length)), Number(at))
    })
    onFile('fsyncSync', file => file.sync())
    onFile('fdatasyncSync', file => file.sync())
    onFile('ftruncateSync', (file, [, size]) => file.truncate(Number(size)))
    this.wrap(Syncer.prototype, 'sync', (call, _, syncer) => {
      const done = open.get(Number(Reflect.get(syncer, 'descriptor')))?.beginSync()
      const result = call()
      if (!(result instanceof Promise)) throw new Error('a sync is no promise')
      return result.then(() => {
        if (countsSyncs) done?.()
      })
    })
  }

  /** The power is cut. */
  cut(random: Random): Image {
    return new Image(new Map([...this.files].map(([path, file]) => [basename(path), file.cut(random)])))
  }

  /** Watches no longer. */
  end(): void {
    for (const each of this.restore) each()
  }

  private wrap(owner: object, name: string, around: (call: () => unknown, args: unknown[], self: object) => unknown): void {
    const original: unknown = Reflect.get(owner, name)
    if (typeof original !== 'function') throw new Error(`there is no ${name}`)
    Reflect.set(owner, name, function (this: object, ...args: unknown[]): unknown {
      return around(() => Reflect.apply(original, this, args) as unknown, args, this)
    })
    this.restore.push(() => Reflect.set(owner, name, original))
  }
}
