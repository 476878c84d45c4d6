import { join } from 'node:path'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { isNumber, isString, objectOf } from '../../src/lib/shape'
import { fileStorage } from '../../src/relay/store/file-storage'
import type { Store } from '../../src/relay/store/store'
import { Disk, type Image } from './disk'
import { Random } from './random'

const forEver = new AbortController().signal
const logger = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** What the images of a run showed. */
export interface ImageReport {
  images: number
  /** Images that were taken within a checkpoint. */
  inCheckpoints: number
  /** Rows whose flush had been awaited before the power was cut, and which were asked for. */
  acknowledged: number
  /** Those of them that were missing. */
  missing: number
  /** Images that could not be opened, or were not what the file was after some commit. */
  broken: string[]
}

/** How many rows the file keeps. */
const kept = 300

const entryOf = (at: number): string => `${at} `.repeat(1 + new Random(at).between(0, 400))

/** Commit number `at` of a run. */
function commit(store: Store, at: number): void {
  store.commit(writer => {
    writer.run('INSERT INTO payloads VALUES (?, ?, ?)', String(at), at, entryOf(at))
    if (at % 7 === 0) writer.run('DELETE FROM payloads WHERE at <= ?', at - kept)
  })
}

/** Opens an image. @returns the last commit in it. @throws if it is not what the file was after that commit */
async function lastIn(image: Image, folder: string): Promise<number> {
  image.writeTo(folder)
  const store = await fileStorage({ dataDir: folder, logger }).open(forEver)
  try {
    if (store.failure) throw store.failure
    const [check] = store.all(objectOf({ integrity_check: isString }), 'PRAGMA integrity_check')
    if (check?.integrity_check !== 'ok') throw new Error(check?.integrity_check)
    const rows = store.all(objectOf({ at: isNumber, entry: isString }), 'SELECT at, entry FROM payloads ORDER BY at')
    const last = rows.at(-1)?.at ?? 0
    const first = Math.max(1, last - last % 7 - kept + 1)
    const isWhole = rows.every(({ at, entry }, index) => at === first + index && entry === entryOf(at))
    if (!isWhole || rows.length !== (last && last - first + 1)) throw new Error(`it is not what it was after commit ${last}`)
    return last
  } finally {
    await store.close()
    rmSync(folder, { recursive: true })
  }
}

/**
 * Cuts the power of a store at work, again and again, and opens each time what may be on the disk then.
 *
 * @param countsSyncs `false` for the control, in which the disk ignores the syncs of the store
 */
export async function cutPower(images: number, seed: number, countsSyncs = true): Promise<ImageReport> {
  const random = new Random(seed)
  // The disk is in this process, so the files need none.
  const root = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'relay-images-'))
  const folder = join(root, 'data')
  const report: ImageReport = { images: 0, inCheckpoints: 0, acknowledged: 0, missing: 0, broken: [] }
  const taken: { image: Image, acknowledged: number }[] = []
  let acknowledged = 0
  let committed = 0
  const take = (): void => void taken.push({ image: disk.cut(random), acknowledged })
  const disk = new Disk(folder, countsSyncs, () => {
    if (!random.chance(0.03)) return
    report.inCheckpoints++
    take()
  })
  const store = await fileStorage({ dataDir: folder, logger }).open(forEver)
  try {
    while (report.images < images) {
      // Checkpoints are to come often, and at other places each time.
      store.all(objectOf({ wal_autocheckpoint: isNumber }), `PRAGMA wal_autocheckpoint = ${random.between(5, 300)}`)
      const waiting: Promise<unknown>[] = []
      for (let turns = random.between(1, 30); turns > 0; turns--) {
        for (let commits = random.between(1, 4); commits > 0; commits--) commit(store, ++committed)
        if (random.chance(0.5)) {
          const at = committed
          waiting.push(store.flushed().then(() => acknowledged = Math.max(acknowledged, at)))
        }
        if (random.chance(0.3)) await new Promise(resolve => setImmediate(resolve))
        if (random.chance(0.03)) take()
      }
      await Promise.all(waiting)
      if (random.chance(0.3)) take()
      for (const { image, acknowledged } of taken.splice(0)) {
        report.images++
        report.acknowledged += acknowledged
        try {
          report.missing += Math.max(0, acknowledged - await lastIn(image, join(root, String(report.images))))
        } catch (error) {
          report.broken.push(String(error))
        }
      }
    }
  } finally {
    disk.end()
    await store.close()
    rmSync(root, { recursive: true })
  }
  return report
}
