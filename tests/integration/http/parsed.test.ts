import assert from 'node:assert/strict'
import { readdir, rm } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { read, useRelay, type Reply } from '../../support/relay'
import { multipart } from './support'

const relay = useRelay({
  setup(app) {
    // As plugins do that look at every request: the server reads the body for them.
    app.inject(['server'], inner => {
      inner.server.all('/(.*)', (_, next) => next())
    })
  },
})

describe('behind a catch-all route that has read the body', () => {
  const post = async (path: string, body: string, type = ''): Promise<Reply> =>
    read(await relay.request(path, { method: 'POST', body: Buffer.from(body), headers: type ? { 'content-type': type } : {} }))
  // With a form's separators and escapes, which have to stay what they are.
  const text = 'a=b&c=%41+ "你好"'

  for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'application/octet-stream', '']) {
    test(`a message is sent, and what is no JSON or holds too much is a 400, as ${type || 'a body of no type'}`, async () => {
      assert.equal((await post('/webhook', JSON.stringify({ group_id: '123456', msg: text }), type)).status, 200)
      for (const more of [`${'['.repeat(64)}${']'.repeat(64)}`, `[${'{},'.repeat(20_000)}{}]`]) {
        const { status, body: { msg } } = await post('/webhook', `{"group_id":"123456","msg":"x","more":${more}}`, type)
        assert.equal(status, 400)
        assert.match(msg, /^the body has more than (?:64 levels|20000 values)$/)
      }
      // The server answers JSON that it cannot parse on its own.
      if (type !== 'application/json') for (const body of ['a=b', '{"a":', '']) assert.equal((await post('/webhook', body, type)).status, 400, body)
      assert.deepEqual(relay.simulator.ledger.map(entry => entry.text), [text])
    })
  }

  for (const type of ['text/plain', 'application/x-www-form-urlencoded', '']) {
    test(`a text is sent as it is by /send, as ${type || 'a body of no type'}`, async () => {
      assert.equal((await post('/send/group:123456', text, type)).status, 200)
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
