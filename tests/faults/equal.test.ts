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
  timeout: 800, settle: 1, retries: 0, pauseAfter: 1000, pauseFor: 500,
}

const target = { group_id: '123456' }
const text = { ...target, type: 'text', msg: 'equal' }
const file = { ...target, type: 'file', url: `base64://${Buffer.from('equal').toString('base64')}` }
const many = Array.from({ length: 150 }, (_, n) => n)

async function local(t: TestContext): Promise<World> {
  const world = await LocalWorld.start(kind)
  t.after(() => world.stop())
  return world
}

async function killable(t: TestContext, commandCallbackUrl = ''): Promise<World> {
  const world = await ProcessWorld.start(kind, { commandCallbackUrl })
  t.after(() => world.stop())
  return world
}

async function kill(world: World): Promise<void> {
  await world.disturb({ kind: 'kill' })
  await world.settled()
}

async function send(world: World, body: object, key?: string, prefer?: string): Promise<Reply> {
  const headers = { ...key !== undefined && { 'idempotency-key': key }, ...prefer !== undefined && { prefer } }
  return readReply(await world.request('/webhook', { method: 'POST', body: JSON.stringify(body), headers }))
}

async function arrives(world: World, ...request: [body: object, key?: string, prefer?: string]): Promise<void> {
  const reply = await send(world, ...request)
  assert.equal(reply.status, 200, reply.msg)
}

/** Sends something of which nothing arrives. */
async function lose(world: World, body: object, key: string): Promise<void> {
  world.simulator.fault({ fault: { kind: 'silent' } })
  assert.equal((await send(world, body, key)).status, 504)
}

/** How often the platform has the text, or the file. */
function delivered({ simulator }: World, { type }: { type: string }): number {
  return simulator.ledger.filter(({ text, media: [medium] }) => type === 'text' ? text === 'equal' : medium?.type === 'file' && medium.size === 5).length
}

/**
 * Asks for what was lost once more. Who is told `sent` must have a message of its own.
 *
 * @param others the equal ones that arrived
 */
async function askAgain(world: World, body: typeof text | typeof file, key: string, others: number): Promise<Reply> {
  const known = new Set(world.simulator.ledger.map(({ messageId }) => String(messageId)))
  assert.equal(delivered(world, body), others)
  const reply = await send(world, body, key)
  assert([200, 504].includes(reply.status), `${reply.status} ${reply.msg}`)
  assert.equal(delivered(world, body), reply.status === 200 ? others + 1 : others, `told ${reply.status}`)
  const ids = field(reply.data, 'message_ids')
  assert(!Array.isArray(ids) || ids.every(id => !known.has(String(id))), 'it was told of the message of another')
  return reply
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

describe('what was lost is not taken for an equal message of the relay,', { concurrency: 1 }, () => {
  test('whatever was sent into the chat meanwhile, with keys and without', async t => {
    const world = await local(t)
    await lose(world, text, 'lost')
    await arrives(world, text, 'equal')
    await arrives(world, text)
    for (const n of many) await arrives(world, { ...target, msg: `other ${n}` }, n % 2 === 0 ? String(n) : undefined)
    await askAgain(world, text, 'lost', 2)
  })

  test('however many equal ones were sent right before', async t => {
    const world = await local(t)
    for (const n of many) await arrives(world, text, n % 2 === 0 ? String(n) : undefined)
    await lose(world, text, 'lost')
    await askAgain(world, text, 'lost', many.length)
  })

  test('however many equal files were sent meanwhile', async t => {
    const world = await local(t)
    await lose(world, file, 'lost')
    for (let count = 0; count < 70; count++) await arrives(world, file)
    assert.equal((await askAgain(world, file, 'lost', 70)).status, 504)
  })

  test('whether that had a key, came later, answered a command or began a batch during which the relay was killed', async t => {
    const world = await killable(t, await answering(t, text.msg))
    for (const body of [text, file]) {
      await lose(world, body, `lost-${body.type}`)
      await arrives(world, body, `equal-${body.type}`)
      await arrives(world, body, undefined, 'respond-async, wait=5')
    }
    world.simulator.say({ group: target.group_id, user: '10001', text: '#ping 1' })
    await until('the reply is in the chat', () => delivered(world, text) === 3)
    await until('it is recorded', async () => JSON.stringify(await world.request('/deliveries?door=commands').then(readReply)).includes('"sent"'))
    const other = { type: 'file', url: `base64://${Buffer.from('another').toString('base64')}` }
    const isOther = ({ params }: Call): boolean => params.file === other.url
    world.simulator.fault({ fault: { kind: 'silent' }, match: isOther })
    const batch = send(world, { ...target, messages: [text, file, other] }, 'batch').catch(() => undefined)
    await world.simulator.until(({ calls }) => calls.some(isOther))
    await kill(world)
    await batch
    await askAgain(world, text, 'lost-text', 4)
    assert.equal((await askAgain(world, file, 'lost-file', 3)).status, 504)
  })
})

test('a message whose answer was lost is found beside equal ones, after the relay was killed, and known from then on', async t => {
  const world = await killable(t)
  for (const body of [text, file]) {
    await arrives(world, body)
    world.simulator.fault({ fault: { kind: 'lost-answer' } })
    world.simulator.fault({ fault: { kind: 'silent' }, action: /history/, times: Infinity })
    assert.equal((await send(world, body, `key-${body.type}`)).status, 504)
    await arrives(world, body, `later-${body.type}`)
    world.simulator.clearFaults()
  }
  await kill(world)
  for (const body of [text, file]) {
    assert.equal((await send(world, body, `key-${body.type}`)).status, 200)
    assert.equal(delivered(world, body), 3)
    await lose(world, body, `another-${body.type}`)
  }
  await kill(world)
  for (const body of [text, file]) await askAgain(world, body, `another-${body.type}`, 3)
})
