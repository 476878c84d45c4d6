import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { apiKey, startRelay, type App } from '../lib/apps'
import type { Child } from '../lib/child'
import { atLeast, atMostMore } from '../lib/goals'
import { peakMemory, residentMemory } from '../lib/memory'
import { alternate, pick } from '../lib/rounds'
import type { Bench, Row, Scenario } from '../lib/scenario'
import type { Stage } from '../lib/stage'
import { median } from '../lib/statistics'
import { numberOf } from '../lib/values'

const size = 20 * 1024 * 1024
const rival = 'Node.js server that pipes the request to a file'

/** The relay or its rival, as a receiver of uploads. */
interface Receiver {
  child: Child
  url: string
  folder: string
  end(): Promise<void>
}

/** Uploads of 20 MB, one at a time and many at once. */
export const uploads: Scenario = {
  name: 'uploads',
  async run(bench) {
    const { extent } = bench
    const atOnce = extent.isQuick ? 10 : 50
    const one = await measure(bench, { files: extent.isQuick ? 3 : 25, concurrency: 1, rounds: extent.rounds })
    const many = await measure(bench, { files: atOnce, concurrency: atOnce, rounds: extent.rounds })
    const row = { unit: 'MB/s', rival, goal: atLeast(0.7) }
    return [
      { what: 'uploads of 20 MB, 1 at a time', ...row, pairs: pick(one, bytesPerSecond => bytesPerSecond / 1e6) },
      { what: `uploads of 20 MB, ${atOnce} at a time`, ...row, pairs: pick(many, bytesPerSecond => bytesPerSecond / 1e6) },
    ]
  },
}

/** The peak memory while 50 files of 20 MB arrive at once. Each round has new processes. */
export const uploadMemory: Scenario = {
  name: 'upload-memory',
  async run({ stage, extent }): Promise<Row[]> {
    const files = extent.isQuick ? 10 : 50
    const generator = await stage.start('uploads')
    const peak = async (start: (stage: Stage) => Promise<Receiver>): Promise<{ growth: number, peak: number }> => {
      const receiver = await start(stage)
      try {
        // After a few uploads, the code itself is loaded and no longer adds memory.
        await upload(generator, receiver, { files: 4, concurrency: 4 })
        const before = await residentMemory(receiver.child)
        const peak = await peakMemory(receiver.child, () => upload(generator, receiver, { files, concurrency: files }))
        return { growth: peak - before, peak }
      } finally {
        await receiver.end()
      }
    }
    try {
      const results = await alternate(extent.isQuick ? 1 : 3, () => peak(startRelayReceiver), () => peak(startPipe))
      const relayPeak = median(results.map(({ relay }) => relay.peak))
      const rivalPeak = median(results.map(({ rival }) => rival.peak))
      return [{
        what: `peak memory over ${files} × 20 MB concurrent uploads, above what was used before`, unit: 'MB', digits: 1, rival,
        goal: atMostMore(20, 'MB'), pairs: pick(results, ({ growth }) => growth),
        note: `In all, the relay's Koishi app had ${relayPeak.toFixed(0)} MB at its peak, the bare Node.js server ${rivalPeak.toFixed(0)} MB.`,
      }]
    } finally {
      await generator.end()
    }
  },
}

async function measure(
  { stage }: Bench, { rounds, ...amount }: { files: number, concurrency: number, rounds: number },
): Promise<{ relay: number, rival: number }[]> {
  const relay = await startRelayReceiver(stage)
  const pipe = await startPipe(stage)
  const generator = await stage.start('uploads')
  try {
    await upload(generator, relay, { files: 2, concurrency: 1 })
    await upload(generator, pipe, { files: 2, concurrency: 1 })
    return await alternate(rounds, () => upload(generator, relay, amount), () => upload(generator, pipe, amount))
  } finally {
    await Promise.all([relay.end(), pipe.end(), generator.end()])
  }
}

/** @returns bytes a second */
async function upload(generator: Child, { url, folder }: Receiver, amount: { files: number, concurrency: number }): Promise<number> {
  const result = await generator.ask('upload', { url, size, headers: { 'x-api-key': apiKey }, ...amount })
  await empty(folder)
  return numberOf(result, 'bytesPerSecond')
}

/** Removes the uploaded files, so that the disk does not fill up. */
async function empty(folder: string): Promise<void> {
  for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true })
}

async function startRelayReceiver(stage: Stage): Promise<Receiver> {
  const relay: App = await startRelay(stage)
  return { child: relay.child, url: `${relay.url}/upload`, folder: relay.uploads, end: () => relay.end() }
}

async function startPipe(stage: Stage): Promise<Receiver> {
  const folder = await stage.newFolder()
  const child = await stage.start('pipe')
  const port = numberOf(await child.ask('start', { folder }), 'port')
  return { child, url: `http://127.0.0.1:${port}/`, folder, end: () => child.end() }
}
