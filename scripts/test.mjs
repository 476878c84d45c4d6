// Runs every tests/**/*.test.ts, or those whose path contains one of the words given: `npm test -- uploads`.
import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

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
const child = spawn(process.execPath, ['--require', 'yml-register', '--import', 'tsx', '--test', '--test-reporter=spec', '--test-concurrency=2', ...files], { stdio: 'inherit' })
child.on('close', code => process.exit(code ?? 1))
