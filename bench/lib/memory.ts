import { readFile, writeFile } from 'node:fs/promises'
import { numberOf } from './values'
import type { Child } from './child'

const mebibyte = 1024 * 1024
/** The sampling interval of memory if the system does not record the peak, in milliseconds. */
const sampling = 20

/**
 * The memory of a process in MiB, as the system sees it: `VmRSS`. Without `/proc` (macOS, Windows), the process answers its
 * `process.memoryUsage.rss()`, which is the same figure.
 */
export async function residentMemory(child: Child): Promise<number> {
  const figure = await readStatus(child, 'VmRSS')
  return figure ?? numberOf(await child.ask('memory'), 'rss') / mebibyte
}

/**
 * The peak memory of a process during `work`, in MiB: `VmHWM`, which the system records exactly and which is reset before. If it cannot be
 * reset, memory is sampled every 20 ms, and shorter peaks are missed.
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
