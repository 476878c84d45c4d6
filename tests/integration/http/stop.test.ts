import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { describe, test, type TestContext } from 'node:test'
import { apiKey, relayFor, type TestRelay } from '../../support/relay'
import { until } from '../../support/until'
import { group, outline, sends, upload as uploadFile } from '../webhook/support'
import { assertFailure, multipart, Wire } from './support'

const withRelay = (t: TestContext): Promise<TestRelay> => relayFor(t, { config: { chatApiTimeout: 30, chatApiMaxRetries: 0 } })

const message = '{"group_id":"123456","msg":"x"}'
const webhook = ['POST /webhook HTTP/1.1', 'Host: relay', `X-API-Key: ${apiKey}`]
const upload = ['POST /upload HTTP/1.1', 'Host: relay', `X-API-Key: ${apiKey}`, 'Content-Type: multipart/form-data; boundary=limit']
const body = multipart([['a.txt', 'abc'], ['b.txt', 'abc']])

/** A request that the platform never answers. */
async function openCall(relay: TestRelay): Promise<Wire> {
  relay.simulator.fault({ fault: { kind: 'silent' } })
  const wire = await Wire.open(relay.url)
  wire.send([...webhook, `Content-Length: ${message.length}`], message)
  await relay.simulator.until(({ calls }) => calls.some(({ action }) => action === 'send_group_msg'))
  return wire
}

/** A request whose body stands still in the middle. */
async function openUpload(relay: TestRelay): Promise<Wire> {
  const wire = await Wire.open(relay.url)
  wire.send([...upload, `Content-Length: ${body.length}`], body.subarray(0, -30))
  await until('the first file is there', async () => (await readdir(relay.uploadDir).catch(() => [])).length > 0)
  return wire
}

/** A kept-alive connection that has been served once. */
async function idle(relay: TestRelay): Promise<Wire> {
  const wire = await Wire.open(relay.url)
  wire.send(['GET /healthz HTTP/1.1', 'Host: relay'])
  assert.equal((await wire.answer()).status, 200)
  return wire
}

describe('when the bot is going to end', () => {
  test('nothing new is taken, and what is under way is answered within five seconds', async t => {
    const relay = await withRelay(t)
    const [call, running, kept] = [await openCall(relay), await openUpload(relay), await idle(relay)]
    const slow = await Wire.open(relay.url)
    slow.send([...webhook, 'Content-Length: 100', 'Expect: 100-continue'], '{')
    await slow.continued()
    const start = performance.now()
    let isOver = false
    const end = relay.app.parallel('exit', 'SIGTERM').then(() => {
      isOver = true
    })

    for (const [head, wire] of [[webhook, kept], [upload, kept], [['GET /healthz HTTP/1.1', 'Host: relay'], await Wire.open(relay.url)]] as const) {
      wire.send([...head, 'Content-Length: 0'])
      assertFailure(await wire.answer(), 503, /^the relay is stopping/)
    }
    kept.send([...webhook, 'Idempotency-Key: a', 'Content-Length: 0'])
    const unknown = await kept.answer()
    assertFailure(unknown, 503, /^the relay is stopping: try again later$/)
    assert.equal(unknown.headers.get('relay-outcome'), undefined, 'a first request with the key may be leaving')
    assert(!isOver)
    assertFailure(await call.answer(), 504, /may have arrived/)
    assertFailure(await running.answer(), 503, /stopping/)
    assert(performance.now() - start > 3_900, 'those under way have four seconds')
    assertFailure(await slow.answer(), 503, /stopping/)
    await end
    assert(performance.now() - start < 5_000)
    assert.deepEqual(await readdir(relay.uploadDir), [])
  })

  test('what ends in time is answered as ever, and then there is nothing to wait for', async t => {
    const relay = await withRelay(t)
    relay.simulator.fault({ fault: { kind: 'late', ms: 300 } })
    const wire = await Wire.open(relay.url)
    wire.send([...webhook, `Content-Length: ${message.length}`], message)
    await relay.simulator.until(({ ledger }) => ledger.length === 1)
    const running = await openUpload(relay)
    const start = performance.now()
    const end = relay.app.parallel('exit', 'SIGTERM')
    running.socket.write(body.subarray(-30))
    assert.equal((await running.answer()).status, 200)
    assert.equal((await wire.answer()).status, 200)
    await end
    assert(performance.now() - start < 3_000)
  })

  test('nothing under way is nothing to wait for, also after clients that pipelined and went away', async t => {
    const relay = await withRelay(t)
    relay.simulator.fault({ fault: { kind: 'late', ms: 300 } })
    const wire = await Wire.open(relay.url)
    wire.send([...webhook, `Content-Length: ${message.length}`], message)
    wire.send(['GET /healthz HTTP/1.1', 'Host: relay'])
    await until('the second is done, behind the first', () => relay.logs.some(line => line.includes('GET /healthz')))
    wire.socket.destroy()
    await until('the first is done', () => relay.logs.some(line => line.includes('POST /webhook')))
    const start = performance.now()
    await relay.app.parallel('exit', 'SIGTERM')
    assert(performance.now() - start < 2_000)
  })
})

test('when the plugin is unloaded a batch that is under way is sent to its end', async t => {
  const relay = await withRelay(t)
  relay.simulator.fault({ fault: { kind: 'late', ms: 200 } })
  const url = await uploadFile(relay, 'x.png', 'PNG')
  const reply = relay.send({ group_id: group, messages: [{ msg: 'a' }, { type: 'video', url }, { type: 'file', url }] })
  await relay.simulator.until(() => sends(relay).length === 1)
  relay.unload()
  assert.equal((await reply).status, 200)
  assert.deepEqual(outline(relay), ['a', '[video]', '[file]'])
})
