import { startRelay } from '../lib/apps'
import { atLeast, atMostMore } from '../lib/goals'
import { runLoad, textsTo } from '../lib/load'
import { alternate, pick } from '../lib/rounds'
import type { Bench, Pair, Row, Scenario } from '../lib/scenario'
import { fill, responseTimeout } from './memory'

/** The lowest ratio that counts as "no slower": on a shared machine, two runs of the same commit differ by this much. */
const noSlower = atLeast(0.9)
/** The same for memory, in MB. */
const noMore = atMostMore(2, 'MB')

/** The present relay against the relay at a commit of the repository. */
export function against(commit: string): Scenario {
  return {
    name: 'against',
    async run(bench) {
      const plugin = await bench.stage.pluginAt(commit)
      const rival = `the relay at ${commit}`
      const rows: Row[] = []
      for (const [groups, what] of [[50, 'single texts, 50 groups, 50 connections'], [1, 'single texts, 1 group, 50 connections']] as const) {
        rows.push({ what, unit: 'requests/s', rival, goal: noSlower, pairs: await sends(bench, plugin, groups) })
      }
      const amount = bench.extent.isQuick ? 2_000 : 100_000
      const results = await alternate(
        bench.extent.isQuick ? 1 : 2,
        async () => fill(bench, await startRelay(bench.stage, { exposeGc: true, responseTimeout }), '/webhook', amount),
        async () => fill(bench, await startRelay(bench.stage, { exposeGc: true, responseTimeout, plugin }), '/webhook', amount),
      )
      const what = `memory after ${amount.toLocaleString('en-US')} sends`
      rows.push({ what, unit: 'MB', digits: 1, rival, goal: noMore, pairs: pick(results, ({ resident }) => resident) })
      return rows
    },
  }
}

/** How often both are started anew: two processes of the same commit differ by several percent throughout their lives. */
const starts = 3

async function sends(bench: Bench, plugin: string, groups: number): Promise<Row['pairs']> {
  const pairs: Pair[] = []
  for (let start = 0; start < (bench.extent.isQuick ? 1 : starts); start++) pairs.push(...await sendsOfOneStart(bench, plugin, groups))
  return pairs
}

async function sendsOfOneStart({ stage, extent }: Bench, plugin: string, groups: number): Promise<Pair[]> {
  const [now, before] = [await startRelay(stage), await startRelay(stage, { plugin })]
  const generator = await stage.start('load')
  const load = { bodies: textsTo(groups), connections: 50 }
  try {
    const results = await alternate(
      extent.rounds,
      () => runLoad(generator, { url: `${now.url}/webhook`, ...load }, extent),
      () => runLoad(generator, { url: `${before.url}/webhook`, ...load }, extent),
    )
    return pick(results, ({ rate }) => rate)
  } finally {
    await Promise.all([now.end(), before.end(), generator.end()])
  }
}
