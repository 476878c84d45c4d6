import { setTimeout as sleep } from 'node:timers/promises'
import { startBare, startRelay, type App } from '../lib/apps'
import { atMostMore } from '../lib/goals'
import { runLoad, textsTo } from '../lib/load'
import { residentMemory } from '../lib/memory'
import { alternate, pick } from '../lib/rounds'
import type { Bench, Row, Scenario } from '../lib/scenario'
import { median } from '../lib/statistics'
import { numberOf } from '../lib/values'

/**
 * The response timeout of the adapter, in milliseconds. The adapter never clears the timer of a call, which holds the sent message. With
 * the default of one minute, these timers would dominate the figures of both sides.
 */
export const responseTimeout = 1_000

/** In MB. */
interface Figures {
  heapHalfway: number
  heap: number
  resident: number
}

/** How much the heap may grow from halfway to the end and still count as flat, in MB. */
const tolerance = 1

/** The memory that remains after many sends and a garbage collection (`--expose-gc`). Each round has new processes. */
export const memory: Scenario = {
  name: 'memory',
  async run(bench): Promise<Row[]> {
    const { stage, extent } = bench
    const sends = extent.isQuick ? 2_000 : 100_000
    const results = await alternate(
      extent.isQuick ? 1 : 2,
      async () => fill(bench, await startRelay(stage, { exposeGc: true, responseTimeout }), '/webhook', sends),
      async () => fill(bench, await startBare(stage, { exposeGc: true, responseTimeout }), '/send', sends),
    )
    const count = sends.toLocaleString('en-US')
    const heap = (side: 'relay' | 'rival'): string => median(results.map(result => result[side].heap)).toFixed(1)
    return [
      {
        what: `memory after ${count} sends`, unit: 'MB', digits: 1, rival: 'bare route', goal: atMostMore(32, 'MB'),
        pairs: pick(results, ({ resident }) => resident),
        note: `VmRSS. Of that, the JavaScript heap after a garbage collection held ${heap('relay')} MB, the rival's ${heap('rival')} MB.`,
      },
      {
        what: `JavaScript heap of the relay after ${count} sends`, unit: 'MB', digits: 1, rival: 'after half of them',
        goal: atMostMore(tolerance, 'MB'), pairs: results.map(({ relay }) => ({ relay: relay.heap, rival: relay.heapHalfway })),
      },
    ]
  },
}

/** Sends this many texts and measures the memory that remains. */
export async function fill({ stage, extent }: Bench, app: App, path: string, sends: number): Promise<Figures> {
  const generator = await stage.start('load')
  const load = { url: app.url + path, bodies: textsTo(50), connections: 50, amount: sends / 2 }
  const heap = async (): Promise<number> => {
    await sleep(2 * responseTimeout)
    return numberOf(await app.child.ask('memory'), 'heapUsed') / 2 ** 20
  }
  try {
    await runLoad(generator, load, extent)
    const heapHalfway = await heap()
    await runLoad(generator, load, extent)
    return { heapHalfway, heap: await heap(), resident: await residentMemory(app.child) }
  } finally {
    await Promise.all([app.end(), generator.end()])
  }
}
