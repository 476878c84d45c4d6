import { startRelay } from '../lib/apps'
import { atLeast } from '../lib/goals'
import { runLoad, textsTo } from '../lib/load'
import { alternate, pick } from '../lib/rounds'
import type { Scenario } from '../lib/scenario'

/** The relay as it is beside the relay as it was at a commit of the repository. */
export function against(commit: string): Scenario {
  return {
    name: 'against',
    async run({ stage, extent }) {
      const plugin = await stage.pluginAt(commit)
      const [now, before] = [await startRelay(stage), await startRelay(stage, { plugin })]
      const generator = await stage.start('load')
      const load = { bodies: textsTo(50), connections: 50 }
      try {
        const results = await alternate(
          extent.rounds,
          () => runLoad(generator, { url: `${now.url}/webhook`, ...load }, extent),
          () => runLoad(generator, { url: `${before.url}/webhook`, ...load }, extent),
        )
        return [{
          what: 'single texts, 50 groups, 50 connections', unit: 'requests/s', rival: `the relay at ${commit}`, goal: atLeast(0.91),
          pairs: pick(results, ({ rate }) => rate),
        }]
      } finally {
        await Promise.all([now.end(), before.end(), generator.end()])
      }
    },
  }
}
