import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { temporaryFolder } from '../../support/folder'
import { DebianPrograms } from '../../support/programs'
import { until } from '../../support/until'
import { group, relayWith } from '../deliveries/support'

const programs = new DebianPrograms('borgmatic', 'borgmatic', ['borg', 'borgmatic'])
const execute = promisify(execFile)

test('a backup by borgmatic, which reports to healthchecks.io, is watched', { skip: programs.missing }, async t => {
  const relay = await relayWith(t, { config: { language: 'en-US' } })
  const { data } = await relay.ask('/beats/backup', 'PUT', { every: '1d', grace: '1h', to: `group:${group}` })
  const folder = temporaryFolder()
  const [repository, source, config] = [join(folder, 'repository'), join(folder, 'source'), join(folder, 'config.yaml')]
  await mkdir(source)
  await writeFile(config, JSON.stringify({
    location: { source_directories: [source], repositories: [repository], borgmatic_source_directory: folder },
    hooks: { healthchecks: { ping_url: `${relay.url}${String(data.ping)}` } },
  }))
  const env = { ...process.env, HOME: folder, BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK: 'yes' }
  await execute(programs.path('borg'), ['init', '--encryption', 'none', repository], { env })
  const backup = (): Promise<unknown> => execute(programs.path('borgmatic'), ['--config', config, 'create', '--monitoring-verbosity', '1'], { env })
  await backup()
  const { state, duration, log } = (await relay.ask('/beats/backup')).data
  assert.deepEqual([state, typeof duration], ['up', 'number'])
  assert.match(String(log), /archive|repository/i)
  await rm(repository, { recursive: true })
  await assert.rejects(backup())
  await until('it is told', () => relay.texts().length === 1)
  assert.match(relay.texts().join(), /^backup failed: took \d+ s\n[^]*repository/i)
})
