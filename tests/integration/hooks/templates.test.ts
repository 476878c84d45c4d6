import assert from 'node:assert/strict'
import { access, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, test } from 'node:test'
import { apiKey, askAs, useRelay, type Reply } from '../../support/relay'
import { group, post, texts } from './support'

const relay = useRelay()
beforeEach(() => relay.reload())

const ask = (method: string, path: string, body?: object): Promise<Reply> => askAs(relay, apiKey, method, `/templates/${path}`, body)

describe('a template', () => {
  test('is saved, used at once, and gives way to the built-in one when it is removed', async () => {
    const before = await ask('GET', 'message')
    assert.equal(before.data.source, 'built-in')
    assert.deepEqual((await ask('PUT', 'message', { template: '<{{ text }}>' })).data, { template: '<{{ text }}>', source: 'own' })
    await post(relay, `message/group:${group}`, { message: 'one' })
    await ask('PUT', 'message', { template: '[{{ text }}]' })
    await post(relay, `message/group:${group}`, { message: 'two' })
    assert.deepEqual((await ask('DELETE', 'message')).data, { name: 'message' })
    await post(relay, `message/group:${group}`, { message: 'three' })
    assert.deepEqual(texts(relay), ['<one>', '[two]', 'three'])
    assert.deepEqual((await ask('GET', 'message')).data, before.data)
    assert.equal((await ask('DELETE', 'message')).status, 404)
    assert(relay.logs.some(line => line.includes('the template "message" was saved (by the master key from 127.0.0.1)')))
  })

  test('that cannot be parsed, or has no name for a file, is refused and not written', async () => {
    const { status, msg } = await ask('PUT', 'message', { template: '{% if %}' })
    assert.equal(status, 400)
    assert.match(msg, /^template: .*line:1/)
    for (const body of [{}, { template: 7 }]) assert.equal((await ask('PUT', 'message', body)).status, 400)
    for (const name of ['..%2Fescape', '-x', 'x'.repeat(65)]) {
      assert.equal((await ask('PUT', name, { template: 'x' })).status, 400, name)
      assert.equal((await ask('GET', name)).status, 404, name)
      assert.equal((await ask('DELETE', name)).status, 404, name)
    }
    const folder = join(relay.uploadDir, '../data')
    await assert.rejects(access(join(folder, 'escape.liquid')))
    assert.deepEqual((await readdir(join(folder, 'templates'))).filter(name => !name.startsWith('relay.')), [])
  })
})

describe('a preview', () => {
  test('is of a payload that is given or the last that came, and sends and saves nothing', async () => {
    const template = '{{ lang }}: {{ text }}{% picture "data:image/png;base64,iVBORw0KGgo=" %}'
    assert.equal((await ask('POST', 'sentry/preview', {})).status, 404)
    const given = await ask('POST', 'message/preview', { template, payload: { message: 'given' }, event: null, lang: 'en-US' })
    assert.deepEqual(given.data, { text: 'en-US: given', pictures: ['data:image/png;base64,iVBORw0KGgo='] })
    await post(relay, `message/group:${group}`, { message: 'came' })
    assert.deepEqual((await ask('POST', 'message/preview', {})).data, { text: 'came', pictures: [] })
    assert.equal((await ask('POST', 'message/preview', { template })).data.text, 'zh-CN: came')
    assert.equal((await ask('GET', 'message')).data.source, 'built-in')
    assert.deepEqual(texts(relay), ['came'])
    const times = { s: 1_795_165_964, text: '1795165964', ms: 1_795_165_964_000, date: '2026-11-20T09:12:44Z' }
    const own = await ask('POST', 'rollout/preview', {
      template: '{{ app }} {{ s | time: date }} {{ text | time: s }} {{ ms | time: text }} {{ date | time: ms }}', payload: { app: 'shop', ...times },
    })
    assert.match(String(own.data.text), /^shop (\d\d:12)(?: \1){3}$/)
  })

  test('takes the name of the event as the header of the sender', async () => {
    const payload = { zen: 'Design for failure.', hook_id: 1, repository: { full_name: 'a/b' } }
    assert.match(String((await ask('POST', 'github/preview', { payload, event: 'no_such_event' })).data.skipped), /no_such_event/)
    assert.equal((await ask('POST', 'github/preview', { payload })).status, 400)
    const legacy = { project_name: 'Shop', message: 'boom', url: 'https://sentry.example.com/issues/7/', event: {}, triggering_rules: ['Any error'] }
    assert.match(String((await ask('POST', 'sentry/preview', { payload: legacy, event: 'event_alert' })).data.text), /Any error\nboom/)
  })

  test('tells what is wrong', async () => {
    for (const body of [{ template: '{{ a | nonsense }}' }, { template: '{% if %}' }, { payload: [] }, { event: 7 }, { lang: 'fr' }]) {
      assert.equal((await ask('POST', 'message/preview', { payload: { message: 'x' }, ...body })).status, 400, JSON.stringify(body))
    }
    assert.equal((await ask('POST', 'nothing/preview', { payload: {} })).status, 404)
  })
})

describe('a template that takes too much', () => {
  const long = '{% assign s = "0123456789abcdef" %}{% for i in (1..16) %}{% assign s = s | append: s %}{% endfor %}'
  const list = `${long}{% assign l = s | split: "!" %}{% for i in (1..10) %}{% assign l = l | concat: l %}{% endfor %}`
  const hostile = {
    'a capture that doubles': '{% capture a %}xxxxxxxx{% endcapture %}{% for i in (1..40) %}{% capture a %}{{ a }}{{ a }}{% endcapture %}{% endfor %}',
    'a capture of a loop': `${long}{% capture b %}{% for i in (1..999) %}{{ s }}{% endfor %}{% endcapture %}`,
    'a long output': `${long}{% for i in (1..999) %}{{ s }}{% endfor %}`,
    'appended texts': '{% assign a = "xx" %}{% for i in (1..60) %}{% assign a = a | append: a %}{% endfor %}',
    'replaced characters': `${long}{{ s | replace: "0", s | size }}`,
    'split and joined texts': `${long}{% for i in (1..50) %}{% assign l = s | split: "" %}{% assign s = l | join: "ab" %}{% endfor %}`,
    'lists that double': '{% assign a = "a,b" | split: "," %}{% for i in (1..40) %}{% assign a = a | concat: a %}{% endfor %}',
    'a list of one long text as text': `${list}{{ l | upcase | size }}`,
    'a list of one long text as output': `${list}{{ l }}`,
    'lists in lists': '{% assign a = "a" | split: "," %}{% for i in (1..60) %}{% assign b = a | push: a %}{% assign a = b | concat: b %}{% endfor %}{{ a }}',
    'a long range': '{{ (1..100000000) | size }}',
    'the work on a list': '{% assign l = (1..400000) | where: "x" %}{{ l | size }}',
    'loops in loops': '{% for i in (1..2000) %}{% for j in (1..2000) %}{% endfor %}{% endfor %}',
  }
  for (const [name, template] of Object.entries(hostile)) {
    test(`is an error of that template: ${name}`, async () => {
      const before = process.resourceUsage().maxRSS
      const { status, body } = await ask('POST', 'message/preview', { payload: { message: 'x' }, template })
      assert.equal(status, 400)
      assert.match(body.msg, /^template: (?:memory alloc|template render) limit exceeded/)
      assert(process.resourceUsage().maxRSS - before < 100_000, 'it took more than 100 MB')
    })
  }

  test('leaves others alone: a long text, and a long list', async () => {
    const payload = { message: 'x'.repeat(600_000), list: Array.from({ length: 9000 }, (_, index) => ({ name: `item ${index}` })) }
    const template = '{{ message | upcase | size }} {{ list | map: "name" | join: "," | size }} {% capture c %}{{ message }}{% endcapture %}{{ c | size }}'
    const { msg, data } = await ask('POST', 'rollout/preview', { payload, template })
    assert.deepEqual([msg, data.text], ['ok', '600000 88889 600000'])
  })
})
