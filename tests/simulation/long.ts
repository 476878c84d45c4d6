// The simulation in its long form: `npm run test:faults -- [--schedules 100000] [--seed 1] [--workers 2]`.
import { parseArgs } from 'node:util'
import { describe, replayCommand, tryOut } from './harness'
import { bundle, runAll } from './workers'

/** How many failed schedules are described in full. */
const mostShown = 3
/** The number of schedules between two progress reports. */
const step = 10_000

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { schedules: { type: 'string', default: '100000' }, seed: { type: 'string' }, workers: { type: 'string', default: '2' } },
  })
  const first = Number(values.seed ?? Date.now() % 100_000_000)
  const schedules = Number(values.schedules)
  if (schedules === 1) {
    console.log(await describe(first))
    process.exitCode = (await tryOut(first)).length > 0 ? 1 : 0
    return
  }
  const start = Date.now()
  const seconds = (): string => `${((Date.now() - start) / 1000).toFixed(0)} s`
  console.log(`${schedules} schedules from seed ${first} on`)
  const findings = await runAll(await bundle(), [[first, schedules]], {
    workers: Number(values.workers),
    onProgress: done => done % step === 0 && console.log(`${done} schedules in ${seconds()}`),
  })
  for (const { seed } of findings.slice(0, mostShown)) console.log(await describe(seed))
  for (const { seed, problems } of findings.slice(mostShown)) console.log(`seed ${seed} failed: ${problems.join('; ')}; repeat it with: ${replayCommand(seed)}`)
  console.log(`${schedules} schedules in ${seconds()}: ${findings.length === 0 ? 'nothing was found' : `${findings.length} failed`}`)
  process.exitCode = findings.length > 0 ? 1 : 0
}

void main()
