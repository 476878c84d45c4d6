// The fault-injection test in its long form: `npm run test:processes -- [--schedules 300] [--seed N] [--kills] [--reloads]`.
import { parseArgs } from 'node:util'
import { runPlans } from './group'
import { createPlan } from './plan'
import { describeFailure, summarise } from './report'

const { values } = parseArgs({
  options: {
    schedules: { type: 'string', default: '300' },
    seed: { type: 'string' },
    kills: { type: 'boolean', default: false },
    reloads: { type: 'boolean', default: false },
    worlds: { type: 'string', default: '4' },
  },
})

async function main(): Promise<void> {
  const first = Number(values.seed ?? Date.now() % 100_000_000)
  const { kills, reloads } = values
  const plans = Array.from({ length: Number(values.schedules) }, (_, index) => createPlan(first + index, { kills, reloads }))
  const start = Date.now()
  let done = 0
  const outcomes = await runPlans(plans, {
    worlds: Number(values.worlds),
    kills,
    onOutcome: outcome => {
      done++
      if (outcome.problems.length > 0) console.error(describeFailure(outcome))
      if (done % 100 === 0) console.log(`${done} of ${plans.length} in ${((Date.now() - start) / 1000).toFixed(0)} s`)
    },
  })
  console.log(`first seed ${first}`)
  console.log(summarise(outcomes, (Date.now() - start) / 1000))
  process.exit(outcomes.some(({ problems }) => problems.length > 0) ? 1 : 0)
}

void main()
