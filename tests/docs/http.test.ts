import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { until } from '../support/until'
import { bare, record, shape } from './support/json'
import { marked, pageAt } from './support/pages'
import { Reader } from './support/reader'

/** The commands of the pages about the HTTP interface and about delivery, run as a reader would run them. */
describe('a reader', { timeout: 120_000 }, () => {
  const [readme, page, delivery] = [pageAt('README.md'), pageAt('docs/http-api.md'), pageAt('docs/delivery.md')]
  let reader: Reader

  before(async () => {
    reader = await Reader.start(marked(pageAt('docs/commands.md'), 'start-with-callback'))
  })
  after(() => reader.stop())

  async function post(body: string): Promise<void> {
    const response = await fetch(`${reader.url}/webhook`, { method: 'POST', headers: { 'x-api-key': await reader.key() }, body })
    assert.equal(response.status, 200)
  }

  /** The `data` of the answer that a command prints. */
  async function data(script: string): Promise<Record<string, unknown>> {
    const { code, msg, data } = record(await reader.place.output(script))
    assert.deepEqual([code, msg], [0, 'ok'])
    return record(data)
  }

  test('sends a text with the first command', async () => {
    const script = marked(readme, 'send-text')
    assert.deepEqual(shape(await reader.place.output(script)), shape(JSON.parse(marked(readme, 'sent-text'))))
    assert.equal((await reader.messages()).at(-1)?.parts[0]?.text, /-d "([^"]+)"/.exec(script)?.[1])

    await reader.mute(true)
    const again = async () => shape(await reader.place.output(script))
    assert.deepEqual(await again(), shape(JSON.parse(marked(readme, 'said-muted'))))
    await reader.mute(false)
    await until('the group is open again', async () => record(await again()).code === 0)
  })

  test('uploads files with the command', async () => {
    const one = marked(page, 'upload')
    const { files, path } = await data(one)
    assert.deepEqual(files, [path])
    assert.match(String(path), /\/package\.json$/)
    assert.deepEqual(Object.keys(await data(one.replace('-F file=@package.json', '$& -F file=@koishi.yml'))), ['files'])
  })

  test('sends a text and a batch with the commands', async () => {
    const privately = marked(page, 'send-private')
    assert.deepEqual(shape(await reader.place.output(privately)), shape(JSON.parse(marked(page, 'sent-private'))))
    assert.equal((await reader.messages('10001')).at(-1)?.parts[0]?.text, said(privately))

    const earlier = (await reader.messages()).length
    const batch = marked(page, 'send-batch')
    const { results, ...counts } = await data(batch)
    assert.deepEqual(shape(counts), shape({ total: 3, success: 2, failed: 1, delivery_id: '01a1f888-5efd-759b-8a19-306f0428960e' }))
    assert(Array.isArray(results) && results.length === 3)
    assert.deepEqual(['code', 'msg'].map(field => field in record(results[2])), [true, true])

    const [combined = [], ...others] = (await reader.messages()).slice(earlier).map(({ parts }) => parts)
    assert.deepEqual(others, [])
    assert.deepEqual(combined.map(({ type }) => type), ['text', 'image'])
    assert.equal(combined[0]?.text, said(batch)?.replace('\\n', '\n'))
    assert.equal((await reader.bytes(combined[1])).subarray(1, 4).toString(), 'PNG')
  })

  test('sends to several targets, mentions, and has a dry run', async () => {
    const several = marked(page, 'send-several')
    const { deliveries, ...counts } = await data(several)
    assert.deepEqual(counts, { total: 2, success: 2, failed: 0 })
    assert(Array.isArray(deliveries) && deliveries.length === 2)
    for (const target of [undefined, '10001']) assert.equal((await reader.messages(target)).at(-1)?.parts[0]?.text, said(several))

    await post(marked(page, 'mention'))
    const { parts = [] } = (await reader.messages()).at(-1) ?? {}
    assert.deepEqual(parts.map(({ type }) => type), ['reply', 'at', 'text'])

    const earlier = (await reader.messages()).length
    const { target, bot, messages } = await data(marked(page, 'dry-run'))
    assert.deepEqual([target, bot], ['group:123456', 'onebot:10000'])
    assert.deepEqual(messages, [[{ type: 'at', user_id: '10001' }, { type: 'text', msg: said(marked(page, 'dry-run')) }]])
    assert.equal((await reader.messages()).length, earlier)
  })

  test('sends later, and looks at the delivery, with the commands', async () => {
    const later = marked(delivery, 'later')
    const [head, body] = split(await reader.place.paste(later))
    assert.deepEqual(shape(JSON.parse(body)), shape(JSON.parse(marked(delivery, 'accepted'))))
    for (const line of lines(marked(delivery, 'accepted-head'))) assert(lines(head).includes(line), `${line} is not in\n${head}`)

    const look = marked(delivery, 'look')
    const environment = { DELIVERY_ID: String(record(record(JSON.parse(body)).data).delivery_id) }
    await until('it is sent', async () => (await reader.place.paste(look, environment)).includes('"state":"sent"'))
    const { state, results } = record(record(await reader.place.output(look, environment)).data)
    assert.equal(state, 'sent')
    assert.deepEqual(shape(results), shape([{ index: 0, success: true, message_ids: ['1481765933'] }]))
    assert.equal((await reader.messages()).at(-1)?.parts[0]?.text, said(later))
  })

  test('sends once for each key with the command', async () => {
    const earlier = (await reader.messages()).length
    const script = marked(delivery, 'key')
    const [firstHead, first] = split(await reader.place.paste(script))
    const [secondHead, second] = split(await reader.place.paste(script))
    assert.equal(first, second)
    assert.deepEqual([firstHead, secondHead].map(text => /^Idempotent-Replayed: true\r$/m.test(text)), [false, true])
    assert.equal((await reader.messages()).length, earlier + 1)
  })
})

/** The first text that a command sends. */
function said(script: string): string | undefined {
  return /"msg": "([^"]+)"/.exec(script)?.[1]
}

/** The lines of a text, with their UUIDs and times made equal. */
function lines(text: string): string[] {
  return bare(text).split(/\r?\n/).filter(Boolean)
}

/** The head and the body of what `curl -i` prints. */
function split(answer: string): [head: string, body: string] {
  const end = answer.indexOf('\r\n\r\n')
  return [answer.slice(0, end + 2), answer.slice(end + 4)]
}
