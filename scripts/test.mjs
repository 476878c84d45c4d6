// Runs every tests/**/*.test.ts, or those whose path contains one of the words given: `npm test -- uploads`.
import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'

/** How long one file may take, in milliseconds: one that waits for ever is to fail. */
const timeout = 300_000
/** How many files run at a time: one more than cores, because they wait most of their time. */
const concurrency = availableParallelism() + 1

const words = process.argv.slice(2)
const files = readdirSync('tests', { recursive: true })
  .filter(file => file.endsWith('.test.ts'))
  .map(file => join('tests', file))
  .filter(file => words.length === 0 || words.some(word => file.includes(word)))
  .sort()

if (files.length === 0) {
  console.error(`no test file matches ${words.join(', ')}`)
  process.exit(1)
}
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const hasTimeout = major > 20 || minor >= 11
const child = spawn(process.execPath, [
  '--require', 'yml-register', '--import', 'tsx', '--test', '--test-reporter=spec', `--test-concurrency=${concurrency}`,
  ...hasTimeout ? [`--test-timeout=${timeout}`] : [],
  ...files,
], { stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
child.on('close', code => process.exit(code ?? 1))
