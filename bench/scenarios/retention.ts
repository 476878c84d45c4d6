import { readdir } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { startRelay } from '../lib/apps'
import { atMostMore } from '../lib/goals'
import { alternate, pick } from '../lib/rounds'
import type { Bench, Scenario } from '../lib/scenario'
import { numberOf } from '../lib/values'

/** The longest time that a sweep is watched, in milliseconds. */
const patience = 40_000
/** The longest time that an idle relay is watched, in milliseconds. */
const idleTime = 15_000

/** The removal of expired files, which begins when the relay starts. */
export const retention: Scenario = {
  name: 'retention',
  async run(bench) {
    const { extent } = bench
    const count = extent.isQuick ? 2_000 : 100_000
    let time = 1_000
    const results = await alternate(extent.isQuick ? 1 : 2, async () => {
      const watched = await watch(bench, count)
      time = watched.time
      return watched.p99
    }, async () => (await watch(bench, 0, Math.min(time, idleTime))).p99)
    return [{
      what: `99th percentile of the event loop's delay while ${count.toLocaleString('en-US')} expired uploads are removed`, unit: 'ms', digits: 2,
      rival: 'idle', goal: atMostMore(5, 'ms'), pairs: pick(results, p99 => p99),
      note: 'The delay that Node.js reports includes about 1 ms of its timer\'s resolution.',
    }]
  },
}

/**
 * @param files the number of expired files; an idle relay has none
 * @param time how long to watch an idle relay, in milliseconds
 * @returns the delay and the watched time, in milliseconds
 */
async function watch(bench: Bench, files: number, time = 0): Promise<{ p99: number, time: number }> {
  const { stage } = bench
  const uploads = await stage.newFolder()
  const filler = await stage.start('files')
  await filler.ask('fill', { folder: uploads, count: files })
  await filler.end()
  const relay = await startRelay(stage, { uploads })
  try {
    await relay.child.ask('watchDelay')
    const started = Date.now()
    let left = files
    while (Date.now() - started < (files > 0 ? patience : time) && (files === 0 || left > 0)) {
      await sleep(500)
      if (files > 0) left = (await readdir(uploads)).length
    }
    const delay = await relay.child.ask('delay')
    if (left > 0) bench.log(`retention: ${left} of ${files} files were left after ${patience / 1000} s`)
    return { p99: numberOf(delay, 'p99'), time: Date.now() - started }
  } finally {
    await relay.end()
  }
}
