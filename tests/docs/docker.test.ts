import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { ComposeFile } from '../image/compose'
import { temporaryFolder } from '../support/folder'
import { marked, versions } from './support/pages'

for (const page of versions('docker')) {
  test(`the settings are all that the compose files want: ${page.path}`, async () => {
    const folder = temporaryFolder()
    const settings = async (): Promise<Record<string, string>> => {
      const lines = (await readFile(join(folder, '.env'), 'utf8')).trim().split('\n')
      return Object.fromEntries(lines.map(line => {
        const [, name = '', value = ''] = /^([A-Z_]+)=(\S+)$/.exec(line) ?? []
        return [name, value]
      }))
    }
    execFileSync('bash', ['-c', marked(page, 'docker-env')], { cwd: folder })
    assert.equal(new ComposeFile('compose.yml', await settings()).environment('napcat').ACCOUNT, '10000')

    execFileSync('bash', ['-c', marked(page, 'docker-standby')], { cwd: folder })
    const values = await settings()
    for (const file of values.COMPOSE_FILE?.split(':') ?? []) assert.notDeepEqual(new ComposeFile(file, values).services, {})
    assert.match(values.DATABASE_PASSWORD ?? '', /^[0-9a-f]{64}$/)
  })

  test(`the defaults of the database are those of the image: ${page.path}`, async () => {
    const koishi = await readFile(join(__dirname, '../../container/koishi.yml'), 'utf8')
    const shown = new Set([...page.prose.matchAll(/`(DATABASE_[A-Z]+)`/g)].map(([, name]) => name))
    assert.deepEqual(shown, new Set([...koishi.matchAll(/env\.(DATABASE_[A-Z]+)/g)].map(([, name]) => name)))
    for (const [, fallback = ''] of koishi.matchAll(/env\.DATABASE_[A-Z]+\)? \|\| '?(\w+)/g)) assert.match(page.prose, new RegExp(`[\`(（]${fallback}[\`)）]`))
  })
}
