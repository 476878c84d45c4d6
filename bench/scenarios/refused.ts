import { startBare, startRelay } from '../lib/apps'
import { atLeast } from '../lib/goals'
import { runLoad } from '../lib/load'
import { alternate, pick } from '../lib/rounds'
import type { Scenario } from '../lib/scenario'

/** Requests with a wrong key and a large body. */
export const refused: Scenario = {
  name: 'refused',
  async run({ stage, extent }) {
    const relay = await startRelay(stage)
    const bare = await startBare(stage)
    const generator = await stage.start('load')
    const load = { bodies: ['x'.repeat(1024 * 1024)], connections: 10, status: 401, headers: { 'x-api-key': 'wrong' } }
    try {
      const results = await alternate(
        extent.rounds,
        () => runLoad(generator, { url: `${relay.url}/webhook`, ...load }, extent),
        () => runLoad(generator, { url: `${bare.url}/refuse`, ...load }, extent),
      )
      return [{
        what: 'refused requests (wrong key, 1 MB body), 10 connections', unit: 'requests/s', rival: 'Koa route that answers 401 at once',
        goal: atLeast(0.7), pairs: pick(results, ({ rate }) => rate),
      }]
    } finally {
      await Promise.all([relay.end(), bare.end(), generator.end()])
    }
  },
}
