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
const findings = [636]
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
