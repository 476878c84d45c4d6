import assert from 'node:assert/strict'
import { after, before, describe, test, type TestContext } from 'node:test'
import { until } from '../support/until'
import { field, readReply, type Reply } from './answers'
import type { Kind } from './kind'
import { LocalWorld, ProcessWorld, type World } from './world'

/** The default settings in a tenth of their time. */
const kind: Kind = {
  profile: 'napcat', history: true, reportSelf: false, retryUnanswered: true,
  timeout: 1_000, settle: 3_000, retries: 2, pauseAfter: 1000, pauseFor: 500,
}

const text = { type: 'text', msg: '[slow]' }
const file = { type: 'file', url: `base64://${Buffer.from('slow').toString('base64')}` }
const later = { prefer: 'respond-async' }

/** A chat of a relay. */
class Chat {
  constructor(private readonly world: World, private readonly group: string) {}

  /** A chat whose history reaches back to before what is slow; the next message is carried out only after this time, in milliseconds. */
  static async open(world: World, group: string, ms: number): Promise<Chat> {
    const chat = new Chat(world, group)
    chat.isTold(await chat.send({ msg: 'before' }), 200)
    world.simulator.fault({ fault: { kind: 'late', ms, delivered: 'then' }, target: group })
    return chat
  }

  async send(body: object, headers: Record<string, string> = {}): Promise<Reply> {
    const init = { method: 'POST', body: JSON.stringify({ group_id: this.group, ...body }), headers }
    return readReply(await this.world.request('/webhook', init))
  }

  isTold({ status, msg }: Reply, ...statuses: number[]): void {
    assert(statuses.includes(status), `told ${status}: ${msg}; in the chat: ${this.seen.join(', ')}`)
  }

  /** Waits until the record of what was answered says that it is sent. */
  async recorded({ data, headers }: Reply): Promise<void> {
    const accepted = field(data, 'delivery_id')
    const id = typeof accepted === 'string' ? accepted : headers.get('x-request-id') ?? ''
    await until(`the delivery to ${this.group} is recorded as sent`, async () => {
      await this.world.up()
      const reply = await this.world.request(`/deliveries/${id}`).then(readReply).catch(() => undefined)
      return field(reply?.data, 'state') === 'sent'
    }, 30_000)
  }

  /** Once everything has been carried out, and the next message has left as well, there is one of it. */
  async hasOne(): Promise<void> {
    const { world: { simulator }, group } = this
    await simulator.until(({ pending }) => !pending.some(({ params }) => String(params.group_id) === group), 30_000)
    await this.world.up()
    this.isTold(await this.send({ msg: 'after' }, { prefer: 'respond-async, wait=30' }), 200)
    assert.equal(this.seen.filter(what => what !== 'before' && what !== 'after').length, 1, `in the chat: ${this.seen.join(', ')}`)
  }

  /** What the platform has, files by their names. */
  private get seen(): string[] {
    const entries = this.world.simulator.ledger.filter(({ target }) => target.id === this.group)
    return entries.map(({ text, media }) => text || media.map(({ name }) => name).join())
  }
}

async function start(t: TestContext, isKilled = false, change: Partial<Kind> = {}): Promise<World> {
  const world = await (isKilled ? ProcessWorld : LocalWorld).start({ ...kind, ...change })
  t.after(() => world.stop())
  return world
}

describe('what a slow platform is still carrying out is not sent again:', { concurrency: 1 }, () => {
  describe('whatever it is,', { concurrency: true }, () => {
    let world: World
    before(async () => {
      world = await LocalWorld.start(kind)
    })
    after(() => world.stop())
    const cases: [what: string, ms: number, body: object, headers: Record<string, string>, told: number[]][] = [
      ['a text that takes longer than a time-out', 1_900, text, {}, [200, 504]],
      ['a text with a key that takes longer than a time-out', 1_900, text, { 'idempotency-key': 'key' }, [200, 504]],
      ['a deferred text with a key that takes longer than a time-out', 1_900, text, { ...later, 'idempotency-key': 'later' }, [202]],
      ['a file that takes longer than two time-outs', 2_500, file, {}, [200, 504]],
      ['a file that takes longer than all attempts together', 6_000, file, {}, [504]],
    ]
    for (const [index, [what, ms, body, headers, told]] of cases.entries()) {
      test(what, async () => {
        const chat = await Chat.open(world, String(1000 + index), ms)
        const reply = await chat.send(body, headers)
        chat.isTold(reply, ...told)
        await chat.recorded(reply)
        await chat.hasOne()
        if (!('idempotency-key' in headers)) return
        chat.isTold(await chat.send(body, headers), 200, 202)
        await chat.hasOne()
      })
    }

    test('a text with a key whose next attempt would be refused is not told to be refused', async () => {
      const { simulator } = world
      const chat = await Chat.open(world, '2000', 1_900)
      const refusal = simulator.fault({ fault: { kind: 'muted' }, target: '2000' })
      const reply = await chat.send(text, { 'idempotency-key': 'refused' })
      chat.isTold(reply, 200, 504)
      await chat.recorded(reply)
      assert.equal(refusal.hits, 0, 'it was called for again')
      refusal.remove()
      chat.isTold(await chat.send(text, { 'idempotency-key': 'refused' }), 200)
      await chat.hasOne()
    })
  })

  test('a text with a key, the connection being cut while it is carried out', async t => {
    const world = await start(t, false, { timeout: 3_000, settle: 6_000 })
    const chat = await Chat.open(world, '1', 2_500)
    const sending = chat.send(text, { 'idempotency-key': 'key' })
    await world.simulator.until(({ pending }) => pending.length === 1)
    await world.disturb({ kind: 'disconnect' })
    const reply = await sending
    chat.isTold(reply, 200, 504)
    await chat.recorded(reply)
    await chat.hasOne()
  })

  test('a deferred text, and a deferred file with a key, the relay being stopped and then killed meanwhile', async t => {
    // A process takes long to start, which does not go faster.
    const world = await start(t, true, { timeout: 6_000, settle: 12_000 })
    const [texts, files] = [await Chat.open(world, '1', 10_000), await Chat.open(world, '2', 10_000)]
    const reply = await texts.send(text, later)
    texts.isTold(reply, 202)
    files.isTold(await files.send(file, { ...later, 'idempotency-key': 'key' }), 202)
    await world.simulator.until(({ pending }) => pending.length === 2)
    await world.disturb({ kind: 'stop' })
    await world.disturb({ kind: 'kill' })
    await texts.recorded(reply)
    await Promise.all([texts.hasOne(), files.hasOne()])
    files.isTold(await files.send(file, { ...later, 'idempotency-key': 'key' }), 200, 202, 504)
    await files.hasOne()
  })
})
