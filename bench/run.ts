// Measures the relay against its rivals: `npm run bench [-- --quick] [--only <name>]`.
import { cp } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { join, resolve } from 'node:path'
import { endAll } from './lib/child'
import { describeMachine } from './lib/machine'
import type { Bench, Row, Scenario } from './lib/scenario'
import { Stage } from './lib/stage'
import { renderTable } from './lib/table'
import { scenarios } from './scenarios'
import { against } from './scenarios/against'

const help = `npm run bench -- [options]

  --quick           so little of everything that it takes less than two minutes; its figures say little
  --only NAME       only this one, or several with several --only: ${scenarios.map(({ name }) => name).join(', ')}
  --against COMMIT  only the sends, beside those of the plugin as it was at this commit of the repository
  --profile FOLDER  CPU profiles of the relay's processes, one file for each (node --cpu-prof), with the built plugin beside them
  --help            this text
`

const full: Bench['extent'] = { isQuick: false, rounds: 5, window: { seconds: 3, warmUp: 1 } }
const quick: Bench['extent'] = { isQuick: true, rounds: 2, window: { seconds: 0.6, warmUp: 0.4 } }

async function run(): Promise<void> {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true },
      against: { type: 'string' },
      profile: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  const chosen = values.against === undefined
    ? scenarios.filter(({ name }) => values.only?.includes(name) ?? true)
    : [against(values.against)]
  if (values.help || chosen.length === 0) {
    process.stdout.write(help)
    return
  }
  const profiling = values.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(values.profile)}`]
  const stage = await Stage.create(profiling)
  if (values.profile !== undefined) await cp(stage.plugin, join(values.profile, 'index.js'))
  const end = (): void => {
    void endAll().then(() => stage.remove()).finally(() => process.exit(130))
  }
  process.once('SIGINT', end).once('SIGTERM', end)
  try {
    const rows = await runAll(chosen, { stage, extent: values.quick ? quick : full, log })
    process.stdout.write(`${await describeMachine()}\n\n${renderTable(rows)}\n`)
    if (values.quick) process.stdout.write('\nThis was a quick run: its figures say little.\n')
  } finally {
    await endAll()
    await stage.remove()
  }
}

/** Runs all scenarios. A failed one does not stop the others. */
async function runAll(chosen: readonly Scenario[], bench: Bench): Promise<Row[]> {
  const rows: Row[] = []
  for (const scenario of chosen) {
    const started = performance.now()
    try {
      rows.push(...await scenario.run(bench))
    } catch (error) {
      process.exitCode = 1
      bench.log(`${scenario.name} went wrong: ${error instanceof Error ? error.stack ?? error.message : String(error)}`)
      await endAll()
    }
    bench.log(`${scenario.name}: ${((performance.now() - started) / 1000).toFixed(1)} s`)
  }
  return rows
}

function log(text: string): void {
  process.stderr.write(`${text}\n`)
}

run().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack ?? error.message : String(error)}\n`)
  process.exitCode = 1
})
