import { startBare, startRelay } from '../lib/apps'
import { atLeast, atMost, lower } from '../lib/goals'
import { runLoad, textsTo, type LoadResult } from '../lib/load'
import { alternate, pick } from '../lib/rounds'
import type { Bench, Row, Scenario } from '../lib/scenario'

const rival = 'bare route'

/** Single text messages to different groups: no message waits for another. */
export const manyGroups: Scenario = {
  name: 'sends',
  async run(bench) {
    const results = await measure(bench, 50, 50)
    return [
      { what: 'single texts, 50 groups, 50 connections', unit: 'requests/s', rival, goal: atLeast(2), pairs: pick(results, ({ rate }) => rate) },
      { what: 'the same, 99th percentile of the latency', unit: 'ms', digits: 1, rival, goal: lower(), pairs: pick(results, ({ p99 }) => p99) },
    ]
  },
}

/** Single text messages to one group, which wait for one another to keep their order. */
export const oneGroup: Scenario = {
  name: 'one-group',
  async run(bench) {
    const pairs = pick(await measure(bench, 1, 50), ({ rate }) => rate)
    return [{ what: 'single texts, 1 group, 50 connections', unit: 'requests/s', rival, goal: atLeast(0.85), pairs }]
  },
}

/** Single text messages, one after another. */
export const oneConnection: Scenario = {
  name: 'one-connection',
  async run(bench) {
    const pairs = pick(await measure(bench, 1, 1), ({ median }) => median)
    return [{ what: 'single texts, 1 connection, median latency', unit: 'ms', digits: 2, rival, goal: atMost(1), pairs }]
  },
}

/** Ten texts in one request, against ten requests. */
export const batch: Scenario = {
  name: 'batch',
  async run(bench): Promise<Row[]> {
    const items = 10
    const texts = textsTo(50)
    const batches = texts.map((_, index) => JSON.stringify({
      group_id: String(200_001 + index),
      messages: Array.from({ length: items }, (_, item) => ({ type: 'text', msg: `build #4711 of main passed in 2 min 13 s (${item})` })),
    }))
    const results = await measure(bench, 50, 50, batches)
    const pairs = results.map(({ relay, rival }) => ({ relay: relay.rate * items, rival: rival.rate }))
    return [{ what: 'batches of ten texts, 50 connections', unit: 'items/s', rival: 'bare route, one by one', goal: atLeast(5), pairs }]
  },
}

async function measure(
  { stage, extent }: Bench, groups: number, connections: number, relayBodies = textsTo(groups),
): Promise<{ relay: LoadResult, rival: LoadResult }[]> {
  const relay = await startRelay(stage)
  const bare = await startBare(stage)
  const generator = await stage.start('load')
  try {
    return await alternate(
      extent.rounds,
      () => runLoad(generator, { url: `${relay.url}/webhook`, bodies: relayBodies, connections }, extent),
      () => runLoad(generator, { url: `${bare.url}/send`, bodies: textsTo(groups), connections }, extent),
    )
  } finally {
    await Promise.all([relay.end(), bare.end(), generator.end()])
  }
}
