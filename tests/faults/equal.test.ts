import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { describe, test, type TestContext } from 'node:test'
import type { Call } from '../../simulator'
import { until } from '../support/until'
import { field, readReply, type Reply } from './answers'
import type { Kind } from './kind'
import { LocalWorld, ProcessWorld, type World } from './world'

const kind: Kind = {
  profile: 'napcat', history: true, reportSelf: false, retryUnanswered: true,
  timeout: 400, settle: 1, retries: 0, pauseAfter: 1000, pauseFor: 500,
}

const target = { group_id: '123456' }
const text = { ...target, type: 'text', msg: 'equal' }
const file = { ...target, type: 'file', url: `base64://${Buffer.from('equal').toString('base64')}` }
const key = { 'idempotency-key': 'lost' }
const many = Array.from({ length: 150 }, (_, n) => n)

async function local(t: TestContext): Promise<World> {
  const world = await LocalWorld.start(kind)
  t.after(() => world.stop())
  return world
}

async function send(world: World, body: object, headers: Record<string, string> = {}): Promise<Reply> {
  return readReply(await world.request('/webhook', { method: 'POST', body: JSON.stringify(body), headers }))
}

async function arrives(world: World, body: object, headers: Record<string, string> = {}): Promise<string[]> {
  const reply = await send(world, body, headers)
  assert.equal(reply.status, 200, reply.msg)
  return messageIds(reply)
}

function messageIds({ data }: Reply): string[] {
  const ids = field(data, 'message_ids')
  return Array.isArray(ids) ? ids.map(String) : []
}

/** Sends something of which nothing arrives, under the key. */
async function lose(world: World, body: object): Promise<void> {
  world.simulator.fault({ fault: { kind: 'silent' } })
  assert.equal((await send(world, body, key)).status, 504)
}

/** What the platform has of these, counted. */
function delivered({ simulator }: World): number {
  return simulator.ledger.filter(({ text, media: [medium] }) => text === 'equal' || medium?.type === 'file').length
}

/**
 * Asks for what was lost once more. Who is told `sent` must have a message of its own.
 *
 * @param others the equal ones that arrived
 */
async function askAgain(world: World, body: object, others: number): Promise<Reply> {
  const known = new Set(world.simulator.ledger.map(({ messageId }) => String(messageId)))
  const reply = await send(world, body, key)
  assert([200, 504].includes(reply.status), `${reply.status} ${reply.msg}`)
  assert.equal(delivered(world), reply.status === 200 ? others + 1 : others, `told ${reply.status}, and there are ${delivered(world)} in the chat`)
  assert(messageIds(reply).every(id => !known.has(id)), 'it was told of the message of another')
  return reply
}

async function kill(world: World): Promise<void> {
  await world.disturb({ kind: 'kill' })
  await world.settled()
}

async function killable(t: TestContext, callback?: string): Promise<ProcessWorld> {
  const world = await ProcessWorld.start(kind, callback === undefined ? {} : { commandCallbackUrl: callback })
  t.after(() => world.stop())
  return world
}

/** A callback that answers each command with this text. */
async function answering(t: TestContext, reply: string): Promise<string> {
  const server = createServer((_, response) => response.end(JSON.stringify({ reply })))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close())
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  return `http://127.0.0.1:${address.port}/`
}

describe('a message that was lost is not taken for an equal one of the relay,', { concurrency: 1 }, () => {
  test('whatever was sent with keys into the chat meanwhile', async t => {
    const world = await local(t)
    await lose(world, text)
    await arrives(world, text, { 'idempotency-key': 'equal' })
    for (const n of many) await arrives(world, { ...target, msg: `other ${n}` }, { 'idempotency-key': String(n) })
    await askAgain(world, text, 1)
  })

  test('whatever was sent without keys into the chat meanwhile', async t => {
    const world = await local(t)
    await lose(world, text)
    await arrives(world, text)
    for (const n of many) await arrives(world, { ...target, msg: `other ${n}` })
    await askAgain(world, text, 1)
  })

  test('however many equal ones were sent right before', async t => {
    const world = await local(t)
    for (const n of many) await arrives(world, text, n % 2 === 0 ? { 'idempotency-key': String(n) } : {})
    await lose(world, text)
    await askAgain(world, text, many.length)
  })

  test('when that had a key, and the relay was killed', async t => {
    const world = await killable(t)
    await lose(world, text)
    await arrives(world, text, { 'idempotency-key': 'equal' })
    await kill(world)
    await askAgain(world, text, 1)
  })

  test('when a reply to a command said the same, and the relay was killed', async t => {
    const world = await killable(t, await answering(t, text.msg))
    await lose(world, text)
    world.simulator.say({ group: target.group_id, user: '10001', text: '#ping 1' })
    await until('the reply is in the chat', () => delivered(world) === 1)
    await until('it is recorded', async () => JSON.stringify(await world.request('/deliveries').then(readReply)).includes('"sent"'))
    await kill(world)
    await askAgain(world, text, 1)
  })

  test('when the first messages of a batch with a key said the same, and the relay was killed during the batch', async t => {
    const world = await killable(t)
    await lose(world, text)
    world.simulator.fault({ action: 'upload_group_file', fault: { kind: 'silent' } })
    const messages = [{ msg: text.msg }, { type: 'file', url: file.url }]
    const batch = send(world, { ...target, messages }, { 'idempotency-key': 'batch' }).catch(() => undefined)
    await world.simulator.until(({ calls }) => calls.some(({ action }) => action === 'upload_group_file'))
    await world.disturb({ kind: 'kill' })
    await batch
    await world.settled()
    await askAgain(world, text, 1)
  })
})

describe('a file that was lost is not taken for an equal one of the relay,', { concurrency: 1 }, () => {
  test('however many were sent meanwhile', async t => {
    const world = await local(t)
    await lose(world, file)
    for (let count = 0; count < 70; count++) await arrives(world, file)
    assert.equal((await askAgain(world, file, 70)).status, 504)
  })

  for (const [how, headers] of [['with a key', { 'idempotency-key': 'equal' }], ['later', { prefer: 'respond-async, wait=5' }]] as const) {
    test(`when that was sent ${how}, and the relay was killed`, async t => {
      const world = await killable(t)
      await lose(world, file)
      await arrives(world, file, headers)
      await kill(world)
      assert.equal((await askAgain(world, file, 1)).status, 504)
    })
  }

  test('when that was in a batch with a key, and the relay was killed before its end', async t => {
    const world = await killable(t)
    await lose(world, file)
    const other = { type: 'file', url: `base64://${Buffer.from('another').toString('base64')}` }
    const isOther = ({ params }: Call): boolean => params.file === other.url
    world.simulator.fault({ fault: { kind: 'silent' }, match: isOther })
    const batch = send(world, { ...target, messages: [file, other] }, { 'idempotency-key': 'batch' }).catch(() => undefined)
    await world.simulator.until(({ calls }) => calls.some(isOther))
    await world.disturb({ kind: 'kill' })
    await batch
    await world.settled()
    assert.equal((await askAgain(world, file, 1)).status, 504)
  })
})

describe('a message whose answer was lost is found', { concurrency: 1 }, () => {
  for (const [what, body] of [['text', text], ['file', file]] as const) {
    test(`beside equal ones, after the relay was killed (${what})`, async t => {
      const world = await killable(t)
      await arrives(world, body)
      world.simulator.fault({ fault: { kind: 'lost-answer' } })
      world.simulator.fault({ fault: { kind: 'silent' }, action: /history/, times: Infinity })
      assert.equal((await send(world, body, key)).status, 504)
      await arrives(world, body, { 'idempotency-key': 'later' })
      world.simulator.clearFaults()
      await kill(world)
      const found = await send(world, body, key)
      assert.equal(found.status, 200)
      assert.equal(delivered(world), 3)
      // What was found is known to the next process as well.
      const another = { 'idempotency-key': 'another' }
      world.simulator.fault({ fault: { kind: 'silent' } })
      assert.equal((await send(world, body, another)).status, 504)
      await kill(world)
      const again = await send(world, body, another)
      assert.equal(delivered(world), again.status === 200 ? 4 : 3)
    })
  }
})
