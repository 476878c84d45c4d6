import assert from 'node:assert/strict'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { until } from '../../support/until'
import { group, later } from './support'
import { victim } from './victim'

describe('after kill -9', { concurrency: 2 }, () => {
  test('what was answered with 202 is delivered, in its order, and nothing twice', async t => {
    const relay = await victim(t)
    relay.simulator.fault({ fault: { kind: 'late', ms: 5000 } })
    for (let i = 0; i < 5; i++) assert.equal((await relay.post({ group_id: group, msg: String(i) }, later)).status, 202)
    await until('the first has arrived, unanswered', () => relay.texts().length === 1)
    await relay.kill()
    await relay.start()
    // It is there before what waits has been gone through.
    await relay.online()
    assert.equal((await relay.post({ group_id: group, msg: 'after' })).status, 200)
    assert.deepEqual(relay.texts(), ['0', '1', '2', '3', '4', 'after'])
    assert.deepEqual(await relay.states(), ['sent', 'sent', 'sent', 'sent', 'sent', 'sent'])
  })

  test('the history lacks no more than the last of it, and no message is lost or doubled', async t => {
    const relay = await victim(t)
    const ids: string[] = []
    const send = async (msg: string): Promise<void> => {
      const response = await relay.post({ group_id: group, msg })
      assert.equal(response.status, 200)
      ids.push(response.headers.get('x-request-id') ?? '')
    }
    for (let index = 0; index < 40; index++) await send(`early ${index}`)
    // What is written behind is written within a second.
    const end = Date.now() + 1_000
    for (let index = 0; Date.now() < end; index++) await send(`late ${index}`)
    assert.equal((await relay.post({ group_id: group, msg: 'later' }, later)).status, 202)
    const texts = relay.texts()
    await relay.kill()
    await relay.start()
    await relay.online()
    await until('the last one is delivered', () => relay.texts().includes('later'), 20_000)
    assert.deepEqual(relay.texts().filter(text => text !== 'later'), texts.filter(text => text !== 'later'))
    assert.equal(relay.texts().filter(text => text === 'later').length, 1)
    const list = await (await relay.get('/deliveries?limit=1000&state=sent')).text()
    const known = [...list.matchAll(/"id":"([^"]+)"/g)].map(([, id]) => id)
    assert.equal(new Set(known).size, known.length)
    for (const id of ids.slice(0, 40)) assert(known.includes(id), 'what was sent a second before is in the history')
  })

  test('what was leaving and has not arrived is sent', async t => {
    const relay = await victim(t)
    relay.simulator.fault({ fault: { kind: 'silent' } })
    await relay.post({ group_id: group, msg: 'hello' }, later)
    await until('it has left', () => relay.simulator.calls.some(({ action }) => action.startsWith('send_')))
    await relay.kill()
    await relay.start()
    await until('it is delivered', () => relay.texts().length === 1, 20_000)
    await until('that is written down', async () => (await relay.states()).join() === 'sent')
  })

  test('what was leaving has the attempts that are left, over all processes together', async t => {
    const relay = await victim(t, { chatApiTimeout: 1, chatSettleTime: 1, chatApiMaxRetries: 1 })
    assert.equal((await relay.post({ group_id: group, msg: 'before' })).status, 200)
    const calls = (): number => relay.simulator.calls.filter(({ action }) => action.startsWith('send_')).length
    relay.simulator.fault({ fault: { kind: 'silent' }, action: /^send_/, times: 2 })
    await relay.post({ group_id: group, msg: 'hello' }, later)
    for (const count of [2, 3]) {
      await until('it has left', () => calls() === count, 20_000)
      await relay.kill()
      await relay.start()
    }
    await until('it is given up', async () => (await relay.states()).includes('unanswered'), 20_000)
    assert.equal((await relay.post({ group_id: group, msg: 'next' })).status, 200)
    assert.deepEqual(relay.texts(), ['before', 'next'])
    assert.equal(calls(), 4)
  })

  test('what was sent before is not taken for an equal message that is sent now and goes unanswered', async t => {
    const relay = await victim(t, { chatApiTimeout: 0.5, chatApiMaxRetries: 0 })
    const kinds: [group: string, headers: Record<string, string>][] = [['1001', { prefer: 'respond-async, wait=5' }], ['1002', { 'idempotency-key': 'a' }]]
    for (const [group_id, headers] of kinds) assert.equal((await relay.post({ group_id, msg: 'hello' }, headers)).status, 200)
    await relay.kill()
    await relay.start()
    await relay.online()
    for (const [group_id] of kinds) {
      relay.simulator.fault({ fault: { kind: 'silent' } })
      assert.equal((await relay.post({ group_id, msg: 'hello' })).status, 504)
    }
    assert.deepEqual(relay.texts(), ['hello', 'hello'])
  })

  test('a batch goes on where it was, with its files', async t => {
    const relay = await victim(t)
    const url = await relay.upload('report.txt', 'report')
    relay.simulator.fault({ fault: { kind: 'late', ms: 5000 }, action: 'upload_group_file' })
    await relay.post({ group_id: group, messages: [
      { msg: 'text' }, { type: 'file', url }, { type: 'file', url: 'base64://YWI=' }, { type: 'nonsense' },
    ] }, later)
    await until('two have arrived', () => relay.texts().length === 2)
    await relay.kill()
    await relay.start()
    await until('it is finished', async () => (await relay.states()).join() === 'failed', 20_000)
    assert.deepEqual(relay.texts(), ['text', '[file 6]', '[file 2]'])
  })

  test('a divided text goes on where it was', async t => {
    const relay = await victim(t, { longText: 'divide' })
    const msg = 'a line of a log\n'.repeat(1250)
    relay.simulator.fault({ fault: { kind: 'late', ms: 5000 } })
    assert.equal((await relay.post({ group_id: group, msg }, later)).status, 202)
    await until('the first part has arrived', () => relay.texts().length === 1)
    await relay.kill()
    await relay.start()
    await until('it is finished', async () => (await relay.states()).join() === 'sent', 20_000)
    assert.equal(relay.texts().map((text, index) => text.replace(`(${index + 1}/5)\n`, '')).join('\n'), msg.trimEnd())
  })

  test('a picture of 1 MB that came with its request is delivered, and its file goes', async t => {
    const relay = await victim(t, { recordContent: 'none' })
    await relay.simulator.goOffline()
    const picture = Buffer.alloc(1_000_000, 'GIF89a').toString('base64')
    const body = { group_id: group, messages: [{ msg: 'x'.repeat(100_000) }, { type: 'image', url: `base64://${picture}` }] }
    assert.equal((await relay.post(body, later)).status, 202)
    await relay.kill()
    const { size } = await stat(join(relay.folder, 'koishi.db'))
    assert(size < 500_000, `the database has ${size} bytes`)
    const files = async (): Promise<string[]> => readdir(join(relay.folder, 'uploads'))
    assert.equal((await files()).length, 1)
    await relay.start()
    await relay.simulator.goOnline()
    await until('it is delivered', () => relay.texts().length === 1, 20_000)
    assert.deepEqual(relay.simulator.ledger[0]?.media.map(({ size }) => size), [1_000_000])
    await until('its file is removed', async () => (await files()).length === 0)
    assert.deepEqual(await relay.states(), ['sent'])
  })

  test('an Idempotency-Key is remembered, with its answer', async t => {
    const relay = await victim(t)
    const key = { 'idempotency-key': 'a' }
    const first = await (await relay.post({ group_id: group, msg: 'hello' }, key)).text()
    await relay.kill()
    await relay.start()
    await relay.online()
    const second = await relay.post({ group_id: group, msg: 'hello' }, key)
    assert.equal(second.headers.get('idempotent-replayed'), 'true')
    assert.equal(await second.text(), first)
    assert.deepEqual(relay.texts(), ['hello'])
  })

  test('a request with a key that only waited in its queue is sent when it comes again', async t => {
    const relay = await victim(t)
    const key = { 'idempotency-key': 'a' }
    relay.simulator.fault({ fault: { kind: 'silent' } })
    const interrupted = [assert.rejects(relay.post({ group_id: group, msg: 'first' }))]
    await until('the first has left', () => relay.simulator.calls.some(({ action }) => action.startsWith('send_')))
    interrupted.push(assert.rejects(relay.post({ group_id: group, msg: 'second' }, key)))
    await until('the second waits', async () => (await relay.states()).includes('queued'))
    await relay.kill()
    await Promise.all(interrupted)
    await relay.start()
    await relay.online()
    const again = await relay.post({ group_id: group, msg: 'second' }, key)
    assert.equal(again.status, 200)
    assert.equal(again.headers.get('idempotent-replayed'), null)
    assert.deepEqual(relay.texts(), ['second'])
  })

  test('a request with a key whose caller was waiting is looked up when it comes again', async t => {
    const relay = await victim(t)
    const cases = [['lost-answer', '1001'], ['silent', '1002']] as const
    const ask = (group_id: string): Promise<Response> => relay.post({ group_id, messages: [{ msg: 'hello' }] }, { 'idempotency-key': group_id })
    for (const [kind, target] of cases) relay.simulator.fault({ fault: { kind }, action: /^send_/, target })
    const interrupted = cases.map(([, target]) => assert.rejects(ask(target)))
    await until('both have left', () => relay.simulator.calls.filter(({ action }) => action.startsWith('send_')).length === 2)
    await relay.kill()
    await Promise.all(interrupted)
    await relay.start()
    await relay.online()
    assert.match(await (await relay.get('/deliveries')).text(), /"state":"unanswered".*"outcome":"unanswered".*"state":"unanswered"/)
    for (const [kind, target] of cases) {
      const again = await ask(target)
      assert.equal(again.status, 200)
      assert.equal(again.headers.get('idempotent-replayed'), 'true')
      assert.equal(again.headers.get('relay-outcome'), kind === 'silent' ? 'unanswered' : 'sent')
    }
    assert.deepEqual(relay.texts(), ['hello'])
  })

  test('what has expired meanwhile is not sent', async t => {
    const relay = await victim(t)
    await relay.simulator.goOffline()
    assert.equal((await relay.post({ group_id: group, msg: 'late', expires_in: 0.5 }, later)).status, 202)
    await relay.kill()
    await relay.simulator.goOnline()
    await relay.start()
    await until('it has expired', async () => (await relay.states()).join() === 'expired', 20_000)
    assert.deepEqual(relay.texts(), [])
  })

  test('what had gone unanswered is still looked for, and found', async t => {
    const relay = await victim(t, { chatApiTimeout: 0.5, chatApiMaxRetries: 0, chatSettleTime: 6 })
    relay.simulator.fault({ fault: { kind: 'late', ms: 3_000, delivered: 'then' } })
    assert.equal((await relay.post({ group_id: group, msg: 'slow' }, { 'idempotency-key': 'a' })).status, 504)
    await relay.kill()
    await relay.start()
    await until('it is found', async () => (await relay.states()).join() === 'sent', 20_000)
    assert.deepEqual(relay.texts(), ['slow'])
  })

  test('what had gone unanswered and did not arrive is sent again, also when nobody waits for it', async t => {
    const relay = await victim(t, { chatApiTimeout: 0.5, chatSettleTime: 6 })
    assert.equal((await relay.post({ group_id: group, msg: 'before' })).status, 200)
    relay.simulator.fault({ fault: { kind: 'silent' } })
    const picture = 'base64://iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII='
    assert.equal((await relay.post({ group_id: group, type: 'image', url: picture }, later)).status, 202)
    await until('it is unanswered', async () => (await relay.states()).includes('unanswered'))
    await relay.kill()
    await relay.start()
    await until('it is sent, as the one before it', async () => (await relay.states()).join() === 'sent,sent', 30_000)
    assert.deepEqual(relay.texts().length, 2)
  })
})
