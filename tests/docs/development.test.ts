import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { marked, repository, versions } from './support/pages'
import { clean } from './support/reader'

describe('the example of a test', () => {
  for (const page of versions('development')) {
    test(`passes as it is written in ${page.path}`, async () => {
      const folder = await mkdtemp(join(tmpdir(), 'relay-docs-'))
      try {
        const file = join(folder, 'example.test.ts')
        await writeFile(file, marked(page, 'example-test').replace('./support/relay', join(repository, 'tests/support/relay')))
        const options = ['--require', 'yml-register', '--import', 'tsx', '--test', '--test-reporter=tap', file]
        const { stdout } = await promisify(execFile)(process.execPath, options, { cwd: repository, env: clean() })
        assert.match(stdout, /^# pass 1$/m)
      } finally {
        await rm(folder, { recursive: true, force: true })
      }
    })
  }
})
