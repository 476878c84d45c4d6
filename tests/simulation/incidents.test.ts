import assert from 'node:assert/strict'
import { it } from 'node:test'
import { tryIncidents } from './incidents'

it('incidents survive kills, power cuts, log-outs and people who act at once: no step after taking, none missed, none twice', async () => {
  for (let seed = 1; seed <= 20; seed++) assert.deepEqual(await tryIncidents(seed), [], `seed ${seed}`)
})
