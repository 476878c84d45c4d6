import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runPlans } from './group'
import { createPlan } from './plan'
import { describeFailure, summarise } from './report'

// The short form; `npm run test:processes` is the long one.
const firstSeed = Number(process.env.FAULTS_SEED ?? 1)

/** How long all schedules together may take, in milliseconds: far more than they do. */
const timeout = 300_000

describe('what callers are told is true, whatever fails', { concurrency: 2 }, () => {
  for (const { what, first, schedules, worlds, kills } of [
    { what: 'on the way to the platform and in the database', first: firstSeed, schedules: 12, worlds: 4, kills: false },
    // In the one before them a muted group is asked about a minute later, while nothing else happens.
    { what: 'when the relay is killed and started again', first: firstSeed + 1, schedules: 3, worlds: 2, kills: true },
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
