// Runs every n-th schedule from each seed on, as many as given: `node - <n> <seed>:<schedules> …`. Writes the findings and the progress.
import { tryOut } from './harness'

/** How many schedules are reported at once. */
const step = 100

// The stacks of simulated failures are never read, and take time.
Error.stackTraceLimit = 0

async function main(): Promise<void> {
  const [n, ...ranges] = process.argv.slice(2)
  let done = 0
  for (const [first = 1, schedules = 1] of ranges.map(range => range.split(':').map(Number))) {
    for (let index = 0; index < schedules; index++) {
      const seed = first + index * Number(n)
      const problems = await tryOut(seed)
      if (problems.length > 0) console.log([seed, ...problems.map(problem => problem.replaceAll(/\s+/g, ' '))].join('\t'))
      if (++done % step === 0) console.log(step)
    }
  }
  console.log(done % step)
}

void main()
