import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describe } from './harness'
import { flowSeeds, heldSeeds, kindSeeds } from './plan'
import { bundle, runAll } from './workers'

/** Other schedules than those of the long form, and always the same. */
const first = 20_000_000
const script = bundle()

test('2000 schedules in simulated time lose nothing, double nothing and misreport nothing', { timeout: 240_000 }, () => assertAllFine(first, 2_000))

for (const [kind, from] of Object.entries(kindSeeds)) {
  test(`500 schedules on a platform that is ${kind} lose, double and misreport nothing either`, { timeout: 120_000 }, () => assertAllFine(from, 500))
}

test('400 schedules with times, digests and ways lose, double and misreport nothing either', { timeout: 120_000 }, () => assertAllFine(flowSeeds, 400))

/** Each once showed a fault of the core. */
const findings = [
  700000312, 700001374, 700001889, 700006940, 700007870, 700010545, 700012754, 700015392, 700016660, 700018731, 700019832,
  720004769, 720007297, 40063605, 40067304, 50014147, 50015264, 740019038, 772000753, 773022204,
]
test('schedules that once showed a fault are fine', { timeout: 120_000 }, async () => {
  for (const seed of findings) await assertAllFine(seed, 1)
})

test('100 messages for a closed chat, or an account that is logged out, arrive once and in order, over a kill', { timeout: 60_000 }, () => assertAllFine(heldSeeds, 50))

/** In a process of its own: in the one of a test each promise is followed by the runner, which takes five times as long. */
async function assertAllFine(from: number, schedules: number): Promise<void> {
  const [finding] = await runAll(await script, { first: from, schedules, workers: 1 })
  if (finding) assert.fail(await describe(finding.seed))
}

test('a seed determines everything', async () => {
  for (const seed of [1, 2, 3]) assert.equal(await describe(seed), await describe(seed))
})
