import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { until } from '../support/until'
import { field, readReply, type Reply } from './answers'
import type { Kind } from './kind'
import { LocalWorld, ProcessWorld, type World } from './world'

/** The default settings in a tenth of their time. */
const kind: Kind = {
  profile: 'napcat', history: true, reportSelf: false, retryUnanswered: true,
  timeout: 1_000, settle: 3_000, retries: 2, pauseAfter: 1000, pauseFor: 500,
}

/** For when the connection or the relay is away for a while, which does not go faster. */
const patient: Kind = { ...kind, timeout: 6_000, settle: 12_000 }

const target = { group_id: '123456' }
const text = { ...target, type: 'text', msg: '[slow]' }
const file = { ...target, type: 'file', url: `base64://${Buffer.from('slow').toString('base64')}` }
const later = { prefer: 'respond-async' }

interface Sent {
  reply: Reply
  /** The ID of the delivery. */
  id: string
}

/** A relay whose platform carries out the next send only after this time, in milliseconds. */
async function start(t: TestContext, ms: number, more: { kind?: Kind, isKilled?: boolean } = {}): Promise<World> {
  const world = await (more.isKilled ? ProcessWorld : LocalWorld).start(more.kind ?? kind)
  t.after(() => world.stop())
  // The chat is not new: its history reaches back to before what is slow.
  assert.equal((await send(world, { ...target, msg: 'before' })).reply.status, 200)
  world.simulator.fault({ fault: { kind: 'late', ms, delivered: 'then' } })
  return world
}

async function send(world: World, body: object, headers: Record<string, string> = {}): Promise<Sent> {
  const reply = await readReply(await world.request('/webhook', { method: 'POST', body: JSON.stringify(body), headers }))
  const id = field(reply.data, 'delivery_id') ?? reply.headers.get('x-request-id')
  return { reply, id: typeof id === 'string' ? id : '' }
}

/** Waits until the record of a delivery says so. */
async function recorded(world: World, id: string, state: string): Promise<void> {
  let last: unknown
  await until(`the delivery is recorded as ${state}`, async () => {
    await world.up()
    const reply = await world.request(`/deliveries/${id}`).then(readReply).catch(() => undefined)
    last = field(reply?.data, 'state')
    return last === state
  }, 30_000).catch((error: unknown) => {
    throw new Error(`the record says ${String(last)}; in the chat: ${seen(world).join(', ')}`, { cause: error })
  })
}

/** What the platform has, files by their names. */
function seen({ simulator }: World): string[] {
  return simulator.ledger.map(({ text, media }) => text || media.map(({ name }) => name).join())
}

/** Once everything has been carried out, and the next message has left as well, there is one of it. */
async function onlyOne(world: World): Promise<void> {
  await world.simulator.until(({ pending }) => pending.length === 0, 30_000)
  await world.up()
  const next = await send(world, { ...target, msg: 'after' }, { prefer: 'respond-async, wait=30' })
  assert.equal(next.reply.status, 200, `the queue goes on: ${next.reply.msg}`)
  assert.deepEqual(seen(world).filter(what => what !== 'before' && what !== 'after').length, 1, `in the chat: ${seen(world).join(', ')}`)
}

function isTold({ reply }: Sent, ...statuses: number[]): void {
  assert(statuses.includes(reply.status), `told ${reply.status}: ${reply.msg}`)
}

describe('what a slow platform is still carrying out is not sent again:', { concurrency: 1 }, () => {
  for (const { what, body, ms, key } of [
    { what: 'a text that takes longer than a time-out', body: text, ms: 1_900, key: undefined },
    { what: 'a text with a key that takes longer than a time-out', body: text, ms: 1_900, key: 'key' },
    { what: 'a file that takes longer than a time-out', body: file, ms: 1_900, key: undefined },
    { what: 'a file that takes longer than two time-outs', body: file, ms: 2_500, key: undefined },
  ]) {
    test(what, async t => {
      const world = await start(t, ms)
      const headers = key === undefined ? undefined : { 'idempotency-key': key }
      const sent = await send(world, body, headers)
      isTold(sent, 200, 504)
      await recorded(world, sent.id, 'sent')
      await onlyOne(world)
      if (headers) {
        isTold(await send(world, body, headers), 200)
        await onlyOne(world)
      }
    })
  }

  test('a file that takes longer than all attempts together', async t => {
    const world = await start(t, 6_000)
    const sent = await send(world, file)
    isTold(sent, 504)
    await recorded(world, sent.id, 'sent')
    await onlyOne(world)
  })

  test('a deferred text with a key that takes longer than a time-out', async t => {
    const world = await start(t, 1_900)
    const sent = await send(world, text, { ...later, 'idempotency-key': 'key' })
    isTold(sent, 202)
    await recorded(world, sent.id, 'sent')
    await onlyOne(world)
  })

  test('a text with a key, the connection being cut while it is carried out', async t => {
    const world = await start(t, 4_000, { kind: patient })
    const sending = send(world, text, { 'idempotency-key': 'key' })
    await world.simulator.until(({ pending }) => pending.length === 1)
    await world.disturb({ kind: 'disconnect' })
    const sent = await sending
    isTold(sent, 200, 504)
    await recorded(world, sent.id, 'sent')
    await onlyOne(world)
  })

  test('a deferred file with a key, the relay being stopped and started while it is carried out', async t => {
    const world = await start(t, 10_000, { kind: patient, isKilled: true })
    isTold(await send(world, file, { ...later, 'idempotency-key': 'key' }), 202)
    await world.simulator.until(({ pending }) => pending.length === 1)
    await world.disturb({ kind: 'stop' })
    await onlyOne(world)
    const again = await send(world, file, { ...later, 'idempotency-key': 'key' })
    isTold(again, 200, 202, 504)
    await onlyOne(world)
  })

  test('a deferred text, the relay being killed while it is carried out', async t => {
    const world = await start(t, 10_000, { kind: patient, isKilled: true })
    const sent = await send(world, text, later)
    isTold(sent, 202)
    await world.simulator.until(({ pending }) => pending.length === 1)
    await world.disturb({ kind: 'kill' })
    await recorded(world, sent.id, 'sent')
    await onlyOne(world)
  })

  test('a text with a key whose next attempt would be refused is not told to be refused', async t => {
    const world = await start(t, 1_900)
    world.simulator.fault({ fault: { kind: 'muted' } })
    const sent = await send(world, text, { 'idempotency-key': 'key' })
    isTold(sent, 200, 504)
    await recorded(world, sent.id, 'sent')
    // Had it been called for again, that call would have used up the fault.
    world.simulator.clearFaults()
    isTold(await send(world, text, { 'idempotency-key': 'key' }), 200)
    await onlyOne(world)
  })
})
