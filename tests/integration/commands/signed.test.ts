import assert from 'node:assert/strict'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, test, type TestContext } from 'node:test'
import { Webhook } from 'standardwebhooks'
import type { TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { group, serveCallback, startWith, user, type Endpoint } from './support'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const pong = '{"reply":"pong"}'

/** What a callback was sent. */
interface Post {
  body: string
  headers: Record<string, string>
}

interface Callback extends Endpoint {
  /** What it was sent, the oldest first. */
  posts: Post[]
}

/** A callback that answers each post with what `answer` does. */
async function startCallback(t: TestContext, answer: (response: ServerResponse, count: number) => void): Promise<Callback> {
  const posts: Post[] = []
  const endpoint = await serveCallback(t, (request, response) => {
    void text(request).then(body => {
      posts.push({ body, headers: webhookHeaders(request.headers) })
      answer(response, posts.length)
    })
  })
  return { ...endpoint, posts }
}

function webhookHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('webhook-')).map(([name, value]) => [name, String(value)]))
}

function say({ simulator }: TestRelay, said = '#ping 你好 "😀"'): void {
  simulator.say({ group, user, text: said })
}

function replied({ simulator }: TestRelay): Promise<unknown> {
  return simulator.until(({ ledger }) => ledger.some(sent => sent.text === 'pong'))
}

/** The lines of the log about commands and their callback. */
function lines({ logs }: TestRelay): string[] {
  return logs.filter(line => /command|callback/.test(line)).map(line => line.replace(/[0-9a-f-]{36}/, '<id>').replace(/\d+ ms$/, '<time>'))
}

const answering = (...statuses: number[]) => (response: ServerResponse, count: number): void => {
  response.statusCode = statuses[count - 1] ?? 200
  response.end(pong)
}

const hanging = (): void => undefined

describe('a command', () => {
  for (const [what, commandCallbackSecret, key] of [
    ['base64 behind whsec_', secret, Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64')],
    ['any other text', '任意 text', Buffer.from('任意 text')],
  ] as const) {
    test(`is signed with a secret of ${what}, as the specification's library verifies it`, async t => {
      const callback = await startCallback(t, answering())
      const { relay } = await startWith(t, callback, { commandCallbackSecret })
      say(relay)
      await replied(relay)
      const [{ body, headers } = assert.fail()] = callback.posts
      const webhook = new Webhook(key, { format: 'raw' })
      assert.deepEqual(webhook.verify(body, headers), JSON.parse(body))
      assert(body.includes('你好'))
      assert.throws(() => webhook.verify(body.replace('ping', 'pong'), headers), /No matching signature/)
      assert.throws(() => new Webhook(Buffer.from('another'), { format: 'raw' }).verify(body, headers), /No matching signature/)
      assert(Math.abs(Number(headers['webhook-timestamp']) - Date.now() / 1000) < 60)
      assert(!relay.logs.join('\n').includes(commandCallbackSecret.replace('whsec_', '')), 'the log has no secret')
    })
  }

  test('has the same ID when its message is reported again after a restart, and another one for another message', async t => {
    const callback = await startCallback(t, answering())
    const { relay } = await startWith(t, callback, { commandCallbackSecret: secret })
    for (const [index, messageId] of [7, 8, 7].entries()) {
      relay.simulator.say({ group, user, text: '#ping x', messageId })
      await relay.simulator.until(({ ledger }) => ledger.length === index + 1)
      if (index === 1) await relay.reload({ commandCallbackUrl: callback.url, commandCallbackSecret: secret })
    }
    const [first, other, again] = callback.posts.map(({ headers }) => headers['webhook-id'])
    assert.deepEqual([first === again, first === other], [true, false])
  })

  test('is refused by a callback that has another secret', async t => {
    const callback = await startCallback(t, response => {
      const [{ body, headers } = assert.fail()] = callback.posts
      assert.throws(() => new Webhook('whsec_AAAA').verify(body, headers), /No matching signature/)
      response.writeHead(401).end()
    })
    const { relay, passed } = await startWith(t, callback, { commandCallbackSecret: secret, commandCallbackRetry: true })
    say(relay)
    await until('the command goes on to the others', () => passed.length === 1)
    assert.equal(lines(relay).at(-1), 'message-relay warn <id> command "ping" from group "123456": no reply: status 401, <time>')
    assert.equal(callback.posts.length, 1)
  })

  test('has no further headers without the settings', async t => {
    const callback = await startCallback(t, answering())
    const { relay } = await startWith(t, callback, {})
    say(relay)
    await replied(relay)
    assert.deepEqual(callback.posts.map(({ headers }) => headers), [{}])
  })

  test('is not posted when the secret is malformed, so that nothing is taken that is not signed', async t => {
    const callback = await startCallback(t, answering())
    const { relay, passed } = await startWith(t, callback, { commandCallbackSecret: 'whsec_s3cret!' })
    say(relay)
    await until('the command goes on to the others', () => passed.length === 1)
    assert.deepEqual(callback.posts, [])
    assert(relay.logs.includes('message-relay warn commandCallbackSecret in koishi.yml is malformed, it must be whsec_ and base64, or any other text: no command is posted until it is fixed'))
    assert(!relay.logs.join('\n').includes('s3cret'))
    await relay.update({ commandCallbackUrl: callback.url, commandCallbackSecret: secret })
    say(relay)
    await replied(relay)
  })
})

describe('a callback that is asked a second time', () => {
  test('gets the same ID with another signature', async t => {
    const callback = await startCallback(t, answering(503))
    const { relay, passed } = await startWith(t, callback, { commandCallbackSecret: secret, commandCallbackRetry: true })
    say(relay)
    await replied(relay)
    const [first = assert.fail(), second = assert.fail(), ...others] = callback.posts
    assert.deepEqual(others, [])
    assert.equal(second.body, first.body)
    assert.equal(second.headers['webhook-id'], first.headers['webhook-id'])
    assert(Number(second.headers['webhook-timestamp']) > Number(first.headers['webhook-timestamp']))
    for (const { body, headers } of [first, second]) new Webhook(secret).verify(body, headers)
    await until('the log says so', () => lines(relay).at(-1)?.includes('replied') === true)
    assert.deepEqual(passed, [])
    assert.deepEqual(lines(relay).slice(-2), [
      'message-relay warn <id> the callback did not answer and is asked once more: status 503',
      'message-relay info <id> command "ping" from group "123456": replied, <time>',
    ])
  })

  test('gets its ID without a secret as well', async t => {
    const callback = await startCallback(t, answering(503))
    const { relay } = await startWith(t, callback, { commandCallbackRetry: true })
    say(relay)
    await replied(relay)
    const [{ headers } = assert.fail(), ...others] = callback.posts
    assert.deepEqual(Object.keys(headers), ['webhook-id'])
    assert.deepEqual(others.map(post => post.headers), [headers])
  })

  for (const [what, answer, config] of [
    ['does not answer in time', (response: ServerResponse, count: number) => count > 1 && response.end(pong), { chatApiTimeout: 0.5 }],
    ['closes the connection without an answer', (response: ServerResponse, count: number) => count > 1 ? response.end(pong) : response.destroy(), {}],
  ] as const) {
    test(`is one that ${what}`, async t => {
      const callback = await startCallback(t, answer)
      const { relay } = await startWith(t, callback, { commandCallbackRetry: true, ...config })
      say(relay)
      await replied(relay)
      assert.equal(callback.posts.length, 2)
    })
  }

  for (const [what, answer, posts] of [
    ['answers 503 twice', answering(503, 503), 2],
    ['answers 500', answering(500), 1],
    ['breaks off within its answer', (response: ServerResponse) => {
      response.writeHead(200, { 'content-length': 100 }).write('{', () => response.destroy())
    }, 1],
  ] as const) {
    test(`is asked ${posts === 1 ? 'once' : 'no more than twice'} where it ${what}`, async t => {
      const callback = await startCallback(t, answer)
      const { relay, passed } = await startWith(t, callback, { commandCallbackRetry: true })
      say(relay)
      await until('the command goes on to the others', () => passed.length === 1)
      assert.equal(callback.posts.length, posts)
    })
  }

  for (const [what, answer] of [['answers 503', answering(503)], ['does not answer', hanging]] as const) {
    test(`is none that ${what}, without the setting`, async t => {
      const callback = await startCallback(t, answer)
      const { relay, passed } = await startWith(t, callback, { commandCallbackSecret: secret, chatApiTimeout: 0.5 })
      say(relay)
      await until('the command goes on to the others', () => passed.length === 1)
      assert.equal(callback.posts.length, 1)
    })

    test(`is none that ${what}, once the plugin is disposed`, async t => {
      const callback = await startCallback(t, answer)
      const { relay, passed } = await startWith(t, callback, { commandCallbackRetry: true })
      say(relay)
      await until('the callback is asked', () => callback.posts.length === 1)
      if (answer !== hanging) await until('the second try is near', () => lines(relay).at(-1)?.includes('once more') === true)
      relay.unload()
      await until('the command goes on to the others', () => passed.length === 1)
      assert.equal(lines(relay).at(-1), 'message-relay info <id> command "ping" from group "123456": given up: the relay is stopping, <time>')
      assert.equal(callback.posts.length, 1)
    })
  }
})
