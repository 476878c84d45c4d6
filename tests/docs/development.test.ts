import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { temporaryFolder } from '../support/folder'
import { marked, pageAt, repository } from './support/pages'
import { clean } from './support/reader'

test('the example of a test passes as it is written', async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'example.test.ts')
  const example = marked(pageAt('docs/development.md'), 'example-test')
  await writeFile(file, example.replace('./support/relay', join(repository, 'tests/support/relay')))
  const options = ['--require', 'yml-register', '--import', 'tsx', '--test', '--test-reporter=tap', file]
  const { stdout } = await promisify(execFile)(process.execPath, options, { cwd: repository, env: clean() })
  assert.match(stdout, /^# pass 1$/m)
})
