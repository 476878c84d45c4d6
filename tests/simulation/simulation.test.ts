import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describe, tryOut } from './harness'
import { flowSeeds, heldSeeds, kindSeeds } from './plan'

/** Other schedules than those of the long form, and always the same. */
const first = 20_000_000
const schedules = 2_000

test(`${schedules} schedules in simulated time lose nothing, double nothing and misreport nothing`, { timeout: 240_000 }, async () => {
  for (let seed = first; seed < first + schedules; seed++) await assertFine(seed)
})

for (const [kind, from] of Object.entries(kindSeeds)) {
  test(`500 schedules on a platform that is ${kind} lose, double and misreport nothing either`, { timeout: 120_000 }, async () => {
    for (let seed = from; seed < from + 500; seed++) await assertFine(seed)
  })
}

test('400 schedules with times, digests and ways lose, double and misreport nothing either', { timeout: 120_000 }, async () => {
  for (let seed = flowSeeds; seed < flowSeeds + 400; seed++) await assertFine(seed)
})

/** Each once showed a fault of the core. */
const findings = [
  700000312, 700001374, 700001889, 700006940, 700007870, 700010545, 700012754, 700015392, 700016660, 700018731, 700019832,
  720004769, 720007297,
]
test('schedules that once showed a fault are fine', { timeout: 120_000 }, async () => {
  for (const seed of findings) await assertFine(seed)
})

test('100 messages for a closed chat, or an account that is logged out, arrive once and in order, over a kill', { timeout: 60_000 }, async () => {
  for (let seed = heldSeeds; seed < heldSeeds + 50; seed++) await assertFine(seed)
})

async function assertFine(seed: number): Promise<void> {
  const problems = await tryOut(seed)
  if (problems.length > 0) assert.fail(await describe(seed))
}

test('a seed determines everything', async () => {
  for (const seed of [1, 2, 3]) assert.equal(await describe(seed), await describe(seed))
})
