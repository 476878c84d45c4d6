import assert from 'node:assert/strict'
import { after, describe } from 'node:test'
import { fieldsOf } from '../../../src/lib/shape'
import { Simulator } from '../../../simulator'
import { PlatformServer } from '../../platforms/server'
import { until } from '../../support/until'
import { later } from './support'
import { overKill, type Victim } from './victim'

type Fields = Readonly<Record<string, unknown>>

/** The IDs of the platform messages that a delivery has become. */
function idsOf({ results }: Fields): unknown[] {
  const list: unknown[] = Array.isArray(results) ? results : []
  return list.flatMap(result => fieldsOf(result).message_ids ?? [])
}

async function accept(relay: Victim, to: string, msg: string, more: object = {}): Promise<void> {
  assert.equal((await relay.post({ to, msg, ...more }, later)).status, 202)
}

/** Waits until each delivery to a chat is sent, or each at all. */
function allSent(relay: Victim, query = ''): Promise<void> {
  return until('each is sent', async () => (await relay.records(`?limit=1000${query}`)).every(({ state }) => state === 'sent'), 20_000)
}

// What becomes of each at other moments of a kill is in tests/unit/relay.
describe('what is put off, or goes several ways,', async () => {
  const second = await Simulator.start({ anyTarget: true, selfId: '20002' })
  const receiver = await PlatformServer.start(() => ({}))
  after(async () => {
    await second.close()
    await receiver.stop()
  })
  const [first, next] = ['onebot:10000:group:1002', 'onebot:20002:group:1002']
  const targets = {
    flapping: { to: 'onebot:10000:group:1001', digest: 1 }, accounts: { first: [first, next] }, web: { first: [first, receiver.url] },
  }

  overKill('is there once:', { config: { targets }, others: [second] }, {
    async 'a digest has the last state of 33 monitors that flap'(relay, chat) {
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
      relay.simulator.fault({ fault: { kind: 'lost-answer' }, target: chat })
      await until('a digest has arrived', () => relay.texts(chat).length === 2)
      await report(names.slice(11, 22))
      return async () => {
        await report(names.slice(22))
        await allSent(relay)
        const ledger = relay.simulator.ledger.filter(({ target }) => target.id === chat)
        const records = await relay.records('?limit=1000&door=hooks/uptime-kuma')
        assert.deepEqual([records.length, new Set(ledger.map(({ text }) => text)).size], [66, ledger.length])
        // Each of them has become one message, and each message is what some of them have become.
        assert(records.every(record => idsOf(record).length === 1))
        assert.deepEqual([...new Set(records.flatMap(idsOf))].sort(), ledger.map(({ messageId }) => String(messageId)).sort())
        for (const name of names) {
          const last = ledger.findLast(({ text }) => new RegExp(`${name}\\b`).test(text))
          assert.match(last?.text ?? '', new RegExp(`✅[^\\n]*${name}\\b`), name)
        }
      }
    },

    async 'a message stays on the way whose call had no answer'(relay, chat) {
      relay.simulator.fault({ fault: { kind: 'not-member' }, target: chat, times: Infinity })
      second.fault({ fault: { kind: 'lost-answer' } })
      receiver.fault({ path: /^/, answer: 'none' })
      await accept(relay, 'accounts', 'arrived')
      await accept(relay, 'web', 'posted')
      await until('all were called for', () => second.ledger.length === 1 && receiver.calls.length === 1)
      return async () => {
        await allSent(relay)
        assert.deepEqual([relay.texts(chat), second.ledger.map(({ text }) => text)], [[], ['arrived']])
        // A receiver knows a repetition by its ID.
        const posts = new Map(receiver.calls.map(({ headers, fields }) => [headers['webhook-id'], fields.text]))
        assert.deepEqual([...posts.values()], ['posted'])
      }
    },

    async 'a thread has one message left where the one before was being replaced'(relay) {
      const { simulator } = relay
      const chats = ['2001', '2002', '2003']
      const order = { thread: 'a', thread_mode: 'replace' }
      const texts = (): string[] => chats.flatMap(id => relay.texts(id))
      for (const id of chats) await accept(relay, `onebot:10000:group:${id}`, 'old', order)
      for (const id of chats) await allSent(relay, `&target=group:${id}`)
      const old = chats.map(id => simulator.ledger.find(({ target }) => target.id === id)?.messageId)
      // The old one is not taken back; it is, and nobody knows; the new one has arrived, and nobody knows.
      for (const [place, kind] of (['silent', 'lost-answer'] as const).entries()) {
        simulator.fault({ action: 'delete_msg', fault: { kind }, match: ({ params }) => params.message_id === old[place] })
      }
      simulator.fault({ fault: { kind: 'lost-answer' }, target: '2003' })
      for (const id of chats) await accept(relay, `onebot:10000:group:${id}`, 'new', order)
      const taken = (): unknown[] => simulator.calls.filter(({ action }) => action === 'delete_msg').map(({ params }) => params.message_id)
      await until('all are there', () => texts().length === 6 && taken().length === 2)
      return async () => {
        for (const id of chats) await allSent(relay, `&target=group:${id}`)
        assert.equal(texts().length, 6)
        assert.deepEqual(old.map(id => taken().filter(each => each === id).length), [2, 2, 1])
        assert.equal(taken().length, 5)
        const deeds = await Promise.all(chats.map(async id => (await relay.records(`?target=group:${id}`))[0]?.thread))
        // Whether the one that nobody knows of is gone, the next process cannot tell.
        assert.deepEqual([deeds[0], deeds[2]], ['replaced', 'replaced'])
      }
    },
  })
})
