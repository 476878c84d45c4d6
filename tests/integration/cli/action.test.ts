import { load } from 'js-yaml'
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { describe, test } from 'node:test'
import { temporaryFolder } from '../../support/folder'
import { serve } from '../../support/listen'
import { apiKey } from '../../support/relay'
import { group, useStored } from '../deliveries/support'
import { run, type Ended } from './support'

const repository = resolve(__dirname, '../../..')
const committed = join(repository, 'action/index.js')

describe('the GitHub Action', { timeout: 60_000 }, () => {
  const folder = temporaryFolder()

  const relay = useStored({ config: { chatApiMaxRetries: 0 } })

  /** Runs it as a runner does, with the defaults of action.yml. */
  async function step(inputs: Record<string, string>): Promise<Ended & { outputs: Record<string, string> }> {
    const { inputs: known } = load(await readFile(join(repository, 'action.yml'), 'utf8')) as { inputs: Record<string, { default?: string }> }
    const given = { url: relay.url, key: apiKey, to: `group:${group}`, ...inputs }
    const output = join(folder, 'output')
    await writeFile(output, '')
    const ended = await run(committed, [], {
      ...Object.fromEntries(Object.entries(known).map(([name, { default: text = '' }]) => [`INPUT_${name.toUpperCase()}`, text])),
      ...Object.fromEntries(Object.entries(given).map(([name, text]) => [`INPUT_${name.toUpperCase()}`, text])),
      GITHUB_OUTPUT: output, LANG: 'zh_CN.UTF-8', GITHUB_SERVER_URL: 'https://github.com', GITHUB_REPOSITORY: 'team/app', GITHUB_WORKFLOW: 'build', GITHUB_JOB: 'test',
      GITHUB_REF_NAME: '7/merge', GITHUB_HEAD_REF: 'fix', GITHUB_ACTOR: 'alice', GITHUB_RUN_ID: '42', GITHUB_RUN_ATTEMPT: '2',
    })
    const written = await readFile(output, 'utf8')
    const outputs = [...written.matchAll(/^(\w+)<<(\S+)\n(.*)\n\2$/gm)].map(([, name = '', , value = '']) => [name, value])
    return { ...ended, outputs: Object.fromEntries(outputs) as Record<string, string> }
  }

  test('is committed as it is built', async () => {
    const fresh = join(folder, 'index.js')
    assert.equal(spawnSync(process.execPath, [join(repository, 'scripts/action.mjs'), fresh]).status, 0)
    assert((await readFile(fresh)).equals(await readFile(committed)), 'run npm run build:action and commit action/index.js')
  })

  test('sends a text, masks the key, and sets the outputs', async () => {
    const { code, stdout, outputs } = await step({ text: 'a "quote" and $(danger)\nbelow' })
    assert.equal(code, 0, stdout)
    assert(stdout.startsWith(`::add-mask::${apiKey}\n`))
    assert.deepEqual(relay.texts(), ['a "quote" and $(danger)\nbelow'])
    const [delivery] = await relay.list()
    assert.deepEqual(outputs, { delivery_id: delivery?.id, outcome: 'sent', message_ids: String(relay.simulator.ledger[0]?.messageId) })
  })

  test('tells the result of the job with a link, as a thread with its run', async t => {
    const told = await step({ status: 'true', job_status: 'failure' })
    assert.equal(told.code, 0, told.stdout)
    assert.equal((await step({ status: 'true', job_status: 'success', text: 'at last' })).code, 0)
    const [first, second] = relay.simulator.ledger
    assert.equal(first?.text, '❌ [team/app] build / test: failure\nfix · alice\nhttps://github.com/team/app/actions/runs/42/attempts/2')
    assert.match(second?.text ?? '', /\/attempts\/2\nat last$/)
    let asked = ''
    const url = await serve(t, (request, response) => {
      asked = request.url ?? ''
      request.resume().once('end', () => response.setHeader('relay-outcome', 'sent').end('{"code": 0, "msg": "ok", "data": {}}'))
    })
    assert.equal((await step({ status: 'true', job_status: 'success', url })).outputs.outcome, 'sent')
    assert.equal(asked, '/send/group%3A123456?thread=team%2Fapp%2Fruns%2F42')
    await step({ status: 'true', thread: 'nightly', urgent: 'true', url })
    assert.equal(asked, '/send/group%3A123456?thread=nightly&urgent=1')
  })

  test('sends the same again in another step: its key is its own', async () => {
    assert.deepEqual([(await step({ text: 'x' })).code, (await step({ text: 'x' })).code], [0, 0])
    assert.deepEqual(relay.texts(), ['x', 'x'])
  })

  test('sends files, one a line', async () => {
    const paths = ['a.txt', 'b.txt'].map(name => join(folder, name))
    for (const path of paths) await writeFile(path, path)
    const { code, outputs, stdout } = await step({ file: `${paths.join('\n')}\n`, urgent: 'true' })
    assert.deepEqual([code, outputs.outcome], [0, 'sent'], stdout)
    assert.deepEqual(relay.simulator.ledger.map(({ media: [file] }) => file?.name), ['a.txt', 'b.txt'])
  })

  test('fails with the reason, in which no command can hide', async t => {
    relay.simulator.fault({ fault: { kind: 'refuse', wording: 'no\n::set-env name=x::100%' } })
    const refused = await step({ text: 'x' })
    assert.equal(refused.code, 1)
    assert.deepEqual([refused.outputs.outcome, refused.outputs.delivery_id], ['refused', (await relay.list())[0]?.id])
    assert.equal(refused.stdout.split('\n').filter(line => line.startsWith('::')).length, 2, refused.stdout)
    assert.match(refused.stdout, /\n::error::refused: .*100%25/)
    let tries = 0
    const url = await serve(t, (request, response) => {
      const [status, headers] = tries++ > 0 ? [200, { 'relay-outcome': 'sent' }] : [503, { 'retry-after': '0' }]
      request.resume().once('end', () => response.writeHead(status, headers).end('{"code": 0, "msg": "::stop-commands::x", "data": null}'))
    })
    const repeated = await step({ text: 'x', url })
    assert.deepEqual([repeated.code, tries], [0, 2])
    assert.equal(repeated.stdout.split('\n').filter(line => line.startsWith('::')).length, 1, repeated.stdout)
    for (const wrong of [{ text: '' }, { text: 'x', url: '' }, { text: 'x', to: '' }, { text: 'x', status: 'yes' }, { file: '/none' }] as Record<string, string>[]) {
      const { code, stdout, outputs } = await step(wrong)
      assert.deepEqual([code, outputs.outcome], [64, 'usage'])
      assert.match(stdout, /^::error::.+$/m)
    }
    const denied = await step({ text: 'x', key: 'wrong' })
    assert.deepEqual([denied.code, denied.stdout.includes('::error::denied: the API key is wrong')], [77, true], denied.stdout)
  })
})
