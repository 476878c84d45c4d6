import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { fieldsOf } from '../../../src/lib/shape'
import { Simulator } from '../../../simulator'
import { PlatformServer } from '../../platforms/server'
import { until } from '../../support/until'
import { group, later } from './support'
import { victim, type Victim } from './victim'

type Fields = Readonly<Record<string, unknown>>

/** Its database writes no change of a row from the n-th on. */
const failWrites = (relay: Victim, nth = 1): Promise<void> => relay.failDatabase([{ statement: 'set', nth, times: 1_000_000 }])

const sends = ({ calls }: Simulator): number => calls.filter(({ action }) => action.startsWith('send_')).length

/** The IDs of the platform messages that a delivery has become. */
function idsOf({ results }: Fields): unknown[] {
  const list: unknown[] = Array.isArray(results) ? results : []
  return list.flatMap(result => fieldsOf(result).message_ids ?? [])
}

async function accept(relay: Victim, to: string, texts: readonly string[], more: object = {}): Promise<void> {
  for (const msg of texts) assert.equal((await relay.post({ to, msg, ...more }, later)).status, 202)
}

/** Waits until every delivery is sent. */
function allSent(relay: Victim): Promise<void> {
  return until('each is sent', async () => (await relay.records('?limit=1000')).every(({ state }) => state === 'sent'), 20_000)
}

describe('after kill -9, a digest', { concurrency: 2 }, () => {
  const members = ['one', 'two', 'three']
  const config = { chatApiTimeout: 1, targets: { flapping: { to: `group:${group}`, digest: 2 }, slow: { to: 'group:1001', digest: 600 } } }

  /** One digest has left of all that went to a chat after its first message, and each member tells so. */
  async function leftOnce(relay: Victim, id: string): Promise<void> {
    const [first, digest, ...rest] = relay.simulator.ledger.filter(({ target }) => target.id === id)
    assert.deepEqual([first?.text, rest], ['zero', []])
    for (const msg of members) assert.equal(digest?.text.split(msg).length, 2, digest?.text)
    const records = (await relay.records('?door=webhook')).filter(({ group_id: chat }) => chat === id)
    assert.deepEqual(records.slice(0, 3).map(idsOf), [1, 2, 3].map(() => [String(digest?.messageId)]))
    for (const { digest: share } of records.slice(0, 3)) assert.deepEqual({ ...fieldsOf(share), id: '' }, { id: '', count: 3, shown: true })
  }

  test('leaves once, whether it waited for its time or its call had not arrived', async t => {
    const relay = await victim(t, config)
    for (const name of ['flapping', 'slow']) await accept(relay, name, ['zero'])
    await allSent(relay)
    relay.simulator.fault({ fault: { kind: 'silent' }, target: group })
    for (const name of ['flapping', 'slow']) await accept(relay, name, members)
    await until('one was called for', () => sends(relay.simulator) === 3)
    await relay.kill()
    await relay.start()
    await allSent(relay)
    for (const id of [group, '1001']) await leftOnce(relay, id)
  })

  test('leaves once where it was written down, and not called for', async t => {
    const relay = await victim(t, config)
    await accept(relay, 'flapping', ['zero'])
    await allSent(relay)
    await failWrites(relay)
    await accept(relay, 'flapping', members)
    await until('it is written down', async () => (await relay.records('?door=digest')).length === 1)
    assert.equal(sends(relay.simulator), 1)
    await relay.kill()
    await relay.start()
    await allSent(relay)
    await leftOnce(relay, group)
  })

  for (const written of [0, 1]) {
    test(`does not leave again where it was answered, and ${written} of its four records were written`, async t => {
      const relay = await victim(t, config)
      await accept(relay, 'flapping', ['zero'])
      await allSent(relay)
      relay.simulator.fault({ fault: { kind: 'late', ms: 300 } })
      await accept(relay, 'flapping', members)
      await until('it has arrived', () => relay.texts().length === 2)
      await failWrites(relay, written + 1)
      await until('it was answered', async () => (await relay.records()).some(record => idsOf(record).length > 0 && record.digest !== undefined))
      await relay.kill()
      await relay.start()
      await allSent(relay)
      await leftOnce(relay, group)
      assert.equal(sends(relay.simulator), 2)
    })
  }

  test('has the last state of 33 monitors that flap, and nothing twice', async t => {
    const relay = await victim(t, { ...config, targets: { flapping: { to: `group:${group}`, digest: 1 } } })
    const names = Array.from({ length: 33 }, (_, index) => `web-${index}`)
    const report = async (monitors: readonly string[]): Promise<void> => {
      for (const name of monitors) {
        for (const status of [0, 1]) {
          const body = JSON.stringify({ heartbeat: { status, msg: 'x' }, monitor: { id: name, name }, msg: name })
          assert((await relay.get('/hooks/uptime-kuma/flapping', { method: 'POST', body })).ok)
        }
      }
    }
    await report(names.slice(0, 11))
    // The digest of these has arrived, and is not known to have, when the relay is killed; those of the next ones wait for theirs.
    relay.simulator.fault({ fault: { kind: 'lost-answer' } })
    await until('a digest has arrived', () => relay.texts().length === 2)
    await report(names.slice(11, 22))
    await relay.kill()
    await relay.start()
    await relay.online()
    await report(names.slice(22))
    await allSent(relay)
    const { ledger } = relay.simulator
    const records = await relay.records('?limit=1000&door=hooks/uptime-kuma')
    assert.deepEqual([records.length, new Set(ledger.map(({ text }) => text)).size], [66, ledger.length])
    // Each of them has become one message, and each message is what some of them have become.
    assert(records.every(record => idsOf(record).length === 1))
    assert.deepEqual([...new Set(records.flatMap(idsOf))].sort(), ledger.map(({ messageId }) => String(messageId)).sort())
    for (const name of names) {
      const last = ledger.findLast(({ text }) => new RegExp(`${name}\\b`).test(text))
      assert.match(last?.text ?? '', new RegExp(`✅[^\\n]*${name}\\b`), name)
    }
  })
})

describe('after kill -9, a message with several ways', { concurrency: 2 }, () => {
  interface Stage {
    relay: Victim
    second: Simulator
    receiver: PlatformServer
    /** Which way has which message. */
    taken: () => string[]
  }

  /** Two accounts in one group, of which the first is logged out, and an HTTP address. */
  async function stage(t: TestContext): Promise<Stage> {
    const second = await Simulator.start({ anyTarget: true, selfId: '20002' })
    t.after(() => second.close())
    const receiver = await PlatformServer.start(() => ({}))
    t.after(() => receiver.stop())
    const [first, next] = ['onebot:10000:group:1001', 'onebot:20002:group:1001']
    const targets = { accounts: { first: [first, next] }, web: { first: [first, receiver.url] } }
    const relay = await victim(t, { chatApiTimeout: 1, targets }, [second])
    await until('both accounts are online', async () => (await (await relay.get('/statusz')).text()).match(/"online"/g)?.length === 2)
    relay.simulator.turn('loggedOut', true)
    const taken = (): string[] => {
      const posts = receiver.calls.map(({ headers, fields }) => [headers['webhook-id'], `http ${String(fields.text)}`] as const)
      const own = Object.entries({ first: relay.simulator, second }).flatMap(([name, { ledger }]) => ledger.map(({ text }) => `${name} ${text}`))
      // A receiver knows a repetition by its ID.
      return [...own, ...new Map(posts).values()]
    }
    return { relay, second, receiver, taken }
  }

  /** Kills it, and starts it again after the first account has been logged in. */
  async function restart(relay: Victim): Promise<void> {
    await relay.kill()
    relay.simulator.turn('loggedOut', false)
    await relay.start()
    await allSent(relay)
  }

  const wayOf = async (relay: Victim): Promise<unknown> => (await relay.records())[0]?.bot

  test('leaves by the first where it is not written that it goes on', async t => {
    const { relay, taken } = await stage(t)
    await failWrites(relay)
    await accept(relay, 'accounts', ['x'])
    await until('it goes on', async () => await wayOf(relay) === 'onebot:20002')
    await restart(relay)
    assert.deepEqual(taken(), ['first x'])
  })

  test('leaves by the next where that is written, and its call is not', async t => {
    const { relay, taken } = await stage(t)
    await failWrites(relay, 2)
    await accept(relay, 'accounts', ['x'])
    await until('it is about to leave', async () => (await relay.records())[0]?.state === 'sending')
    await restart(relay)
    assert.deepEqual(taken(), ['second x'])
    const [record] = await relay.records()
    assert.deepEqual([record?.bot, Array.isArray(record?.route) && record.route.length], ['onebot:20002', 1])
  })

  test('stays on the way whose call had no answer', async t => {
    const { relay, second, receiver, taken } = await stage(t)
    second.fault({ fault: { kind: 'lost-answer' } })
    receiver.fault({ path: /^/, answer: 'none' })
    await accept(relay, 'accounts', ['arrived'])
    await accept(relay, 'web', ['posted'])
    await until('all were called for', () => second.ledger.length === 1 && receiver.calls.length === 1)
    await restart(relay)
    assert.deepEqual(taken(), ['second arrived', 'http posted'])
  })
})

describe('after kill -9, a thread', () => {
  test('has one message left where the one before was being replaced', async t => {
    const relay = await victim(t, { chatApiTimeout: 1 })
    const { simulator } = relay
    const chats = ['1001', '1002', '1003']
    const order = { thread: 'a', thread_mode: 'replace' }
    for (const id of chats) await accept(relay, `group:${id}`, ['old'], order)
    await allSent(relay)
    const old = chats.map(id => simulator.ledger.find(({ target }) => target.id === id)?.messageId)
    // The old one is not taken back; it is, and nobody knows; the new one has arrived, and nobody knows.
    for (const [place, kind] of (['silent', 'lost-answer'] as const).entries()) {
      simulator.fault({ action: 'delete_msg', fault: { kind }, match: ({ params }) => params.message_id === old[place] })
    }
    simulator.fault({ fault: { kind: 'lost-answer' }, target: '1003' })
    for (const id of chats) await accept(relay, `group:${id}`, ['new'], order)
    const taken = (): unknown[] => simulator.calls.filter(({ action }) => action === 'delete_msg').map(({ params }) => params.message_id)
    await until('all are there', () => relay.texts().length === 6 && taken().length === 2)
    await relay.kill()
    await relay.start()
    await allSent(relay)
    assert.equal(relay.texts().length, 6)
    assert.deepEqual(old.map(id => taken().filter(each => each === id).length), [2, 2, 1])
    assert.equal(taken().length, 5)
    const deeds = (await relay.records()).slice(0, 3).map(({ thread }) => thread).reverse()
    // Whether the one that nobody knows of is gone, the next process cannot tell.
    assert.deepEqual([deeds[0], deeds[2]], ['replaced', 'replaced'])
  })
})
