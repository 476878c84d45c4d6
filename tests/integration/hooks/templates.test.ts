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
    assert.equal((await ask('POST', 'message/preview', {})).status, 404)
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
