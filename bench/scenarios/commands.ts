import { startBare, startRelay, type App } from '../lib/apps'
import { withinSpread } from '../lib/goals'
import { alternate, pick } from '../lib/rounds'
import type { Scenario } from '../lib/scenario'
import { numberOf } from '../lib/values'

/** Chat messages that are not commands, as nearly all are. */
export const commands: Scenario = {
  name: 'commands',
  async run({ stage, extent }) {
    const count = extent.isQuick ? 1_000 : 10_000
    const relay = await startRelay(stage, { config: { commandCallbackUrl: 'http://127.0.0.1:9/' } })
    const bare = await startBare(stage)
    try {
      await alternate(1, () => hear(relay, count), () => hear(bare, count))
      const results = await alternate(extent.rounds, () => hear(relay, count), () => hear(bare, count))
      return [{
        what: `CPU time for ${count.toLocaleString('en-US')} chat messages that are no command`, unit: 'ms', rival: 'the bot without the plugin',
        goal: withinSpread('lower'), pairs: pick(results, time => time),
      }]
    } finally {
      await Promise.all([relay.end(), bare.end()])
    }
  },
}

/** @returns the CPU time that the bot spent, in milliseconds */
async function hear({ child, platform }: App, count: number): Promise<number> {
  const cpuTime = async (): Promise<number> => {
    const usage = await child.ask('cpu')
    return (numberOf(usage, 'user') + numberOf(usage, 'system')) / 1000
  }
  const before = await cpuTime()
  const heard = child.ask('heard', { count })
  await Promise.all([heard, platform.ask('say', { count })])
  return await cpuTime() - before
}
