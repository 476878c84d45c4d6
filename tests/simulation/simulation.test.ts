import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describe } from './harness'
import { flowSeeds, heldSeeds, kindSeeds, pacedSeeds } from './plan'
import { rules } from './rules'
import { bundle, runAll, type Range } from './workers'

/** Always the same schedules, and others than those of the long form. */
const first = 20_000_000
const script = bundle()

for (const [kind, seed, schedules] of [
  ['in simulated time', first, 1_200],
  ['on a platform without a history', kindSeeds.bare, 300],
  ['on a platform that deduplicates calls', kindSeeds.idempotent, 200],
  ['with times, digests and ways', flowSeeds, 200],
  ['with an interval of the account as well', pacedSeeds, 100],
  // A hundred messages each, over a kill.
  ['to closed chats and accounts that are logged out', heldSeeds, 50],
] as const) {
  test(`${schedules} schedules ${kind} lose nothing, double nothing and misreport nothing`, { timeout: 240_000 }, () => (
    assertAllFine([seed, schedules])
  ))
}

/** Each of these schedules once exposed a bug of the core. */
const findings = [
  700000312, 700001374, 700001889, 700006940, 700007870, 700010545, 700012754, 700015392, 700016660, 700018731, 700019832,
  720004769, 720007297, 40063605, 40067304, 50014147, 50015264, 740019038, 772000753, 773022204, 161008413, 21467,
  230060048, 250047238, 250066529, 250086341, 900003709, 900601169, 792100906,
]
test('schedules that once exposed a bug pass', { timeout: 120_000 }, () => assertAllFine(...findings.map(seed => [seed, 1] as const)))

/** Runs in a separate process, because the test runner tracks each promise, which takes five times as long. */
async function assertAllFine(...ranges: readonly Range[]): Promise<void> {
  const [finding] = await runAll(await script, ranges, { workers: 1 })
  if (finding) assert.fail(await describe(finding.seed))
}

test('each rule can still be turned off', { timeout: 60_000 }, async () => {
  for (const { patches } of rules) assert.notEqual(await bundle(patches), await script)
})

test('a seed determines everything', async () => {
  for (const seed of [1, 2, 3]) assert.equal(await describe(seed), await describe(seed))
})
