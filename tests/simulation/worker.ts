// Runs so many schedules, of every n-th seed: `node - <first seed> <schedules> <n>`. Writes what it finds, and how many are done.
import { tryOut } from './harness'

/** How many schedules are reported together. */
const step = 100

// Nobody reads the stacks of failures that are simulated, and they take time.
Error.stackTraceLimit = 0

async function main(): Promise<void> {
  const [first = 1, schedules = 1, n = 1] = process.argv.slice(2).map(Number)
  for (let done = 0; done < schedules;) {
    const seed = first + done * n
    const problems = await tryOut(seed)
    if (problems.length > 0) console.log([seed, ...problems.map(problem => problem.replaceAll(/\s+/g, ' '))].join('\t'))
    if (++done % step === 0) console.log(step)
  }
  console.log(schedules % step)
}

void main()
