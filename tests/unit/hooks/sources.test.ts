import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { object, objects } from '../../../src/hooks/fields'
import { severityOf, type HookRequest, type Source } from '../../../src/hooks/source'
import { sources } from '../../../src/hooks/sources'
import { github } from '../../../src/hooks/sources/github'
import { assertReadable, assertSnapshot, isEvent, languages, readFixtures, render, renderStrictly, requestOf } from './support'

/** What becomes of a request in each language, for a snapshot. */
async function textsOf(source: Source, request: HookRequest, what: string): Promise<string[]> {
  const reading = source.read(request)
  if (!isEvent(reading)) return [`== ${what}: ${String(reading.skipped)}`]
  const { name, branch = '', status = '', thread, view } = reading
  const inThread = thread === undefined ? '' : ` thread=${thread}`
  return Promise.all(languages.map(async lang => {
    const text = await render(source, view, lang)
    assertReadable(text, ['message', 'notification'].includes(name))
    return `== ${what} (${lang}) event=${name} branch=${branch} status=${status}${inThread}\n${text}`
  }))
}

for (const source of sources) {
  describe(`what ${source.name} posts`, () => {
    const fixtures = readFixtures(source.name)

    test('makes texts that can be read', async () => {
      const texts: string[] = []
      for (const { name, request } of fixtures) texts.push(...await textsOf(source, request, name))
      assertSnapshot(source.name === 'github' ? 'github-more' : source.name, texts)
    })

    test('has every field that its template asks for', async () => {
      for (const { request } of fixtures) {
        const reading = source.read(request)
        if (isEvent(reading)) for (const lang of languages) await renderStrictly(source, reading.view, lang)
      }
    })
  })
}

test('the examples of GitHub are all understood, and their texts can be read', async () => {
  const index: unknown = JSON.parse(readFileSync(require.resolve('@octokit/webhooks-examples/api.github.com/index.json'), 'utf8'))
  const definitions = objects(index, Infinity).map(({ name, examples }) => ({ name: String(name), examples: objects(examples, Infinity) }))
  assert.equal(definitions.length, 58)
  const texts = new Set<string>()
  for (const { name, examples } of definitions) {
    for (const payload of examples) {
      const request = requestOf(payload, { 'x-github-event': name, 'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958' })
      request.headers['x-hub-signature-256'] = `sha256=${createHmac('sha256', 'a secret').update(request.raw).digest('hex')}`
      assert(github.isSigned?.(request) && github.verify?.(request, 'a secret'))
      for (const text of await textsOf(github, request, `${name} ${typeof payload.action === 'string' ? payload.action : ''}`.trim())) texts.add(text)
    }
  }
  assertSnapshot('github', [...texts])
})

test('how bad what they post is, and when it began', () => {
  assertSnapshot('severities', sources.map(source => readFixtures(source.name).flatMap(({ name, request }) => {
    const reading = source.read(request)
    const severity = isEvent(reading) && severityOf(reading)
    return severity ? [`${source.name} ${name}: ${severity} ${isEvent(reading) ? reading.begunAt ?? '' : ''}`.trim()] : []
  }).join('\n')).filter(each => each !== ''))
})

test('a reminder of a monitor that is still down tells no new start', () => {
  const [{ request } = assert.fail()] = readFixtures('uptime-kuma').filter(({ name }) => name === 'down')
  const { heartbeat } = request.payload
  const kuma = sources.find(({ name }) => name === 'uptime-kuma')
  const reading = kuma?.read(requestOf({ ...request.payload, heartbeat: { ...object(heartbeat), important: false } }))
  assert.deepEqual([reading && isEvent(reading) && reading.begunAt], [''])
})

describe('what says nothing', () => {
  for (const [name, payload] of [
    ['dingtalk', { msgtype: 'text', text: { content: ' ' } }], ['dingtalk', { msgtype: 'actionCard', actionCard: {} }],
    ['dingtalk', { msgtype: 'feedCard', feedCard: { links: [] } }], ['dingtalk', { msgtype: 'constructor' }], ['dingtalk', {}],
    ['wecom', { msgtype: 'news', news: { articles: [{}] } }], ['wecom', { msgtype: 'image', image: {} }], ['wecom', { msgtype: 'image', image: { base64: '!' } }],
    ['wecom', { msgtype: 'file', file: { media_id: '1' } }],
    ['feishu', { msg_type: 'post', content: { post: {} } }], ['feishu', { msg_type: 'interactive', card: { elements: [] } }], ['feishu', { msg_type: 'image' }],
    ['slack', { text: ' ', blocks: [{ type: 'divider' }], attachments: [{}] }], ['discord', { content: '', embeds: [{ color: 1 }] }],
    ['discord', { components: [{ type: 1, components: [{ type: 2, style: 1, label: 'Retry', custom_id: 'retry' }] }] }],
    ['apprise', { title: '', message: '', attachments: [], type: 'info' }], ['message', { title: '' }], ['uptime-kuma', { heartbeat: null, monitor: null, msg: '' }],
  ] as const) {
    test(`is refused by ${name}: ${JSON.stringify(payload)}`, () => {
      const source = sources.find(each => each.name === name)
      assert.throws(() => source?.read(requestOf(payload)), { code: 'bad-request' })
    })
  }
})
