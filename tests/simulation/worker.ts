// Runs schedules, so many from each seed on and of those every n-th: `node - <n> <seed>:<schedules> …`. Writes what it finds, and how many
// are done.
import { tryOut } from './harness'

/** How many schedules are reported together. */
const step = 100

// Nobody reads the stacks of failures that are simulated, and they take time.
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
