import assert from 'node:assert/strict'
import { readdir, rm } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { read, useRelay, type TestRelay } from '../../support/relay'
import { multipart } from './support'

let relay: TestRelay

useRelay({
  setup(app) {
    // As plugins do that look at every request: the server reads the body for them.
    app.inject(['server'], inner => {
      inner.server.all('/(.*)', (_, next) => next())
    })
  },
}, each => {
  relay = each
})

describe('behind a catch-all route that has read the body', () => {
  for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'application/octet-stream', '']) {
    test(`a message is sent, as ${type || 'a body of no type'}`, async () => {
      // With a form's separators and escapes in the text, which have to stay what they are.
      const text = 'a=b&c=%41+ "你好"'
      const answer = await read(await relay.request('/webhook', {
        method: 'POST', body: JSON.stringify({ group_id: '123456', msg: text }), headers: { 'content-type': type },
      }))
      assert.equal(answer.status, 200)
      assert.deepEqual(relay.simulator.ledger.map(entry => entry.text), [text])
    })

    test(`what is no JSON is a 400, as ${type || 'a body of no type'}`, async () => {
      // The server answers JSON that it cannot parse on its own.
      if (type === 'application/json') return
      for (const body of ['a=b', '{"a":', '']) {
        const answer = await read(await relay.request('/webhook', { method: 'POST', body, headers: { 'content-type': type } }))
        assert.equal(answer.status, 400, body)
      }
    })
  }

  for (const type of ['application/json', 'text/plain']) {
    test(`too much in a body is a 400, as ${type}`, async () => {
      const bodies = [
        `{"group_id":"123456","msg":"x","more":${'['.repeat(64)}${']'.repeat(64)}}`,
        `{"group_id":"123456","msg":"x","more":[${'{},'.repeat(20_000)}{}]}`,
      ]
      for (const body of bodies) {
        const answer = await read(await relay.request('/webhook', { method: 'POST', body, headers: { 'content-type': type } }))
        assert.equal(answer.status, 400)
        assert.match(answer.body.msg, /^the body has more than (?:64 levels|20000 values)$/)
      }
      assert.equal(relay.simulator.ledger.length, 0)
    })
  }

  for (const type of ['text/plain', 'application/x-www-form-urlencoded', '']) {
    test(`a text is sent as it is by /send, as ${type || 'a body of no type'}`, async () => {
      const text = 'a=b&c=%41+ "你好"'
      const answer = await read(await relay.request('/send/group:123456', { method: 'POST', body: Buffer.from(text), headers: type ? { 'content-type': type } : {} }))
      assert.equal(answer.status, 200)
      assert.deepEqual(relay.simulator.ledger.map(entry => entry.text), [text])
    })
  }

  test('a picture is sent by /send, because the server does not read one', async () => {
    const answer = await read(await relay.request('/send/group:123456', {
      method: 'POST', body: Buffer.from('picture'), headers: { 'content-type': 'image/png' },
    }))
    assert.equal(answer.status, 200)
    assert.deepEqual(relay.simulator.ledger.flatMap(({ media }) => media.map(({ type }) => type)), ['image'])
    await rm(relay.uploadDir, { recursive: true })
  })

  test('a form is refused by /send with the reason, and so is a text in another charset', async () => {
    for (const type of ['multipart/form-data; boundary=limit', 'text/plain; charset=gbk']) {
      const answer = await read(await relay.request('/send/group:123456', {
        method: 'POST', body: multipart([['a.txt', 'abc']]), headers: { 'content-type': type },
      }))
      assert.equal(answer.status, 500)
      assert.match(answer.body.msg, /^another plugin of the bot has read the upload/)
    }
  })

  test('an upload is refused with the reason', async () => {
    const answer = await read(await relay.request('/upload', {
      method: 'POST', body: multipart([['a.txt', 'abc']]), headers: { 'content-type': 'multipart/form-data; boundary=limit' },
    }))
    assert.equal(answer.status, 500)
    assert.match(answer.body.msg, /^another plugin of the bot has read the upload/)
    await assert.rejects(readdir(relay.uploadDir), { code: 'ENOENT' })
  })

  test('the key is still wanted', async () => {
    const answer = await read(await fetch(`${relay.url}/webhook`, { method: 'POST', body: '{"group_id":"123456","msg":"x"}' }))
    assert.equal(answer.status, 401)
  })
})
