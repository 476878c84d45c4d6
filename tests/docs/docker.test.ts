import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { ComposeFile } from '../image/compose'
import { temporaryFolder } from '../support/folder'
import { marked, versions } from './support/pages'

for (const page of versions('docker')) {
  test(`the settings are all that compose.yml wants: ${page.path}`, async () => {
    const folder = temporaryFolder()
    execFileSync('bash', ['-c', marked(page, 'docker-env')], { cwd: folder })
    const lines = (await readFile(join(folder, '.env'), 'utf8')).matchAll(/^([A-Z_]+)=(\S+)$/gm)
    const settings = Object.fromEntries(Array.from(lines, ([, name = '', value = '']) => [name, value]))
    assert.equal(new ComposeFile('compose.yml', settings).environment('napcat').ACCOUNT, '10000')
  })
}
