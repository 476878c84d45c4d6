import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runPlans } from './group'
import { createPlan } from './plan'
import { describeFailure, summarise } from './report'

// The short form; `npm run test:processes` is the long form.
const firstSeed = Number(process.env.FAULTS_SEED ?? 1)

/** The time limit of all schedules together, in milliseconds: far more than they need. */
const timeout = 300_000

describe('answers and records stay true under faults', { concurrency: 2 }, () => {
  for (const { what, first, schedules, worlds, kills } of [
    { what: 'faults of the platform', first: firstSeed, schedules: 12, worlds: 4, kills: false },
    // The schedule of `firstSeed` would wait a minute until it asks about a muted group, while nothing else happens.
    { what: 'kills and restarts of the relay', first: firstSeed + 1, schedules: 3, worlds: 2, kills: true },
  ]) {
    test(what, { timeout }, async t => {
      const start = Date.now()
      const plans = Array.from({ length: schedules }, (_, index) => createPlan(first + index, { kills }))
      const outcomes = await runPlans(plans, { worlds, kills })
      t.diagnostic(summarise(outcomes, (Date.now() - start) / 1000))
      const failed = outcomes.filter(({ problems }) => problems.length > 0)
      assert(failed.length === 0, failed.map(describeFailure).join('\n\n'))
    })
  }
})
