import { readFile, writeFile } from 'node:fs/promises'
import { numberOf } from './values'
import type { Child } from './child'

const mebibyte = 1024 * 1024
/** How often memory is looked at where the system does not keep the peak, in milliseconds. */
const sampling = 20

/**
 * The memory that a process occupies, in MiB: `VmRSS`, as the system sees it. Where there is no `/proc` (macOS, Windows), the
 * process is asked for its `process.memoryUsage.rss()`, which is the same figure.
 */
export async function residentMemory(child: Child): Promise<number> {
  const figure = await readStatus(child, 'VmRSS')
  return figure ?? numberOf(await child.ask('memory'), 'rss') / mebibyte
}

/**
 * The most memory that a process occupies while something goes on, in MiB: `VmHWM`, which the system keeps exactly and which is
 * set back before. Where that cannot be done, memory is sampled every 20 ms, and a shorter peak is missed.
 */
export async function peakMemory(child: Child, work: () => Promise<unknown>): Promise<number> {
  const isReset = await writeFile(`/proc/${child.pid}/clear_refs`, '5').then(() => true, () => false)
  if (isReset) {
    await work()
    return await readStatus(child, 'VmHWM') ?? residentMemory(child)
  }
  let peak = 0
  let ended = false
  const watch = async (): Promise<void> => {
    while (!ended) {
      peak = Math.max(peak, await residentMemory(child))
      await new Promise(resolve => setTimeout(resolve, sampling))
    }
  }
  const watching = watch()
  await work().finally(() => {
    ended = true
  })
  await watching
  return peak
}

async function readStatus({ pid }: Child, name: string): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const kibibytes = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]
  return kibibytes === undefined ? undefined : Number(kibibytes) / 1024
}
