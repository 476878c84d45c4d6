import { startRelay } from '../lib/apps'
import { atLeast } from '../lib/goals'
import { runLoad, textsTo } from '../lib/load'
import { alternate, pick } from '../lib/rounds'
import type { Scenario } from '../lib/scenario'

const secretOf = (index: number): string => `a-key-for-caller-number-${index}`

/** Keys with every restriction that is checked on each request. */
function keys(count: number): object[] {
  return Array.from({ length: count }, (_, index) => ({
    name: `caller ${index}`, key: secretOf(index), targets: ['private:*', 'group:1*', 'group:2*'], expires: '2099-12-31',
    from: ['::1', '127.0.0.0/8'], rate: 1_000_000,
  }))
}

/** Single texts with the last of twenty keys, against the same with the only one. */
export const manyKeys: Scenario = {
  name: 'keys',
  async run({ stage, extent }) {
    const many = await startRelay(stage, { config: { keys: keys(20) } })
    const one = await startRelay(stage, { config: { keys: keys(1) } })
    const generator = await stage.start('load')
    const load = { bodies: textsTo(50), connections: 50 }
    try {
      const results = await alternate(
        extent.rounds,
        () => runLoad(generator, { url: `${many.url}/webhook`, headers: { 'x-api-key': secretOf(19) }, ...load }, extent),
        () => runLoad(generator, { url: `${one.url}/webhook`, headers: { 'x-api-key': secretOf(0) }, ...load }, extent),
      )
      return [{
        what: 'single texts with the last of twenty keys, 50 connections', unit: 'requests/s', rival: 'the same with one key',
        goal: atLeast(0.97), pairs: pick(results, ({ rate }) => rate),
      }]
    } finally {
      await Promise.all([many.end(), one.end(), generator.end()])
    }
  },
}
