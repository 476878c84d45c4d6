import { load } from 'js-yaml'
import assert from 'node:assert/strict'
import { connect, createServer } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { listen } from '../support/listen'
import { record } from './support/json'
import { marked, pageAt } from './support/pages'
import { Reader } from './support/reader'

/** A way to a port on which the first answer of `/send` is lost after each call of `lose`. */
async function startLossyProxy(port: number) {
  let requests = 0
  const proxy = createServer(client => {
    let isLost = false
    const server = connect(port, '127.0.0.1')
    client.on('error', () => server.destroy()).on('close', () => server.destroy())
    server.on('error', () => client.destroy()).on('close', () => client.destroy())
    client.on('data', (chunk: Buffer) => {
      if (/^(?:POST|PUT) \/send\//.test(chunk.toString('latin1'))) isLost = requests++ === 0
      server.write(chunk)
    })
    server.on('data', (chunk: Buffer) => {
      if (isLost) client.destroy()
      else client.write(chunk)
    })
  })
  return {
    url: `http://127.0.0.1:${await listen(proxy)}`,
    lose() {
      requests = 0
    },
    /** How many requests have come since then. */
    requests: () => requests,
    close: () => proxy.close(),
  }
}

const page = pageAt('docs/ci.md')

describe('a CI job', { timeout: 120_000 }, () => {
  let reader: Reader
  let proxy: Awaited<ReturnType<typeof startLossyProxy>>

  before(async () => {
    reader = await Reader.start(marked(pageAt('docs/commands.md'), 'start-with-callback'))
    proxy = await startLossyProxy(reader.place.port)
  })
  after(async () => {
    proxy.close()
    await reader.stop()
  })

  /** Runs a snippet while its first answer is lost, and gives what has come into the chat. */
  async function runLossy(snippet: string, key: string): Promise<Record<string, unknown>[]> {
    const earlier = (await reader.messages()).length
    proxy.lose()
    await reader.place.paste(snippet, {
      RELAY_URL: proxy.url,
      RELAY_KEY: await reader.key(),
      RELAY_TARGET: 'group:123456',
      CI_PROJECT_PATH: 'team/app',
      CI_COMMIT_REF_NAME: '"quoted"',
      CI_PIPELINE_ID: key,
      CI_PIPELINE_URL: 'https://gitlab.example.com/1',
      JOB_NAME: '团队 one',
      BUILD_NUMBER: '42',
      BUILD_URL: `https://jenkins.example.com/job/团队 one/${key}`,
    })
    assert.equal(proxy.requests(), 2, snippet)
    return (await reader.messages()).slice(earlier).flatMap(({ parts }) => parts)
  }

  test('sends once with the job for GitLab, although the first answer is lost', async () => {
    const { script } = record(record(load(marked(page, 'ci-gitlab'))).notify)
    assert(Array.isArray(script) && script.length === 1)
    const [sent, ...others] = await runLossy(String(script[0]), 'gitlab')
    assert.deepEqual(others, [])
    assert.match(String(sent?.text), /^team\/app .*"quoted"\nhttps:\/\/gitlab\.example\.com\/1$/)
  })

  test('sends once with the step for Jenkins, although the first answer is lost', async () => {
    const script = /'''(.*)'''/s.exec(marked(page, 'ci-jenkins'))?.[1]
    assert(script !== undefined)
    const [sent, ...others] = await runLossy(script, 'jenkins')
    assert.deepEqual(others, [])
    assert.match(String(sent?.text), /^团队 one #42 .*\nhttps:\/\/jenkins\.example\.com\//)
  })
})
