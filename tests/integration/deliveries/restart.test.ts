import assert from 'node:assert/strict'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe } from 'node:test'
import type { Reply } from '../../support/relay'
import { until } from '../../support/until'
import { upload } from '../webhook/support'
import { overKill, type Victim } from './victim'

const calls = ({ simulator }: Victim, chat: string): number =>
  simulator.calls.filter(({ action, params }) => /^(?:send|upload)_/.test(action) && String(params.group_id) === chat).length

/** Waits until everything to a chat is in one of these states. */
function reaches(relay: Victim, chat: string, ...states: string[]): Promise<void> {
  return until(`it is ${states.join()}`, async () => (await relay.states(chat)).join() === states.join(), 20_000)
}

async function accept(relay: Victim, chat: string, body: object): Promise<void> {
  await relay.api.accept({ group_id: chat, ...body })
}

describe('a relay', { concurrency: 2 }, () => {
  overKill('while it sends:', { config: {} }, {
    async 'what was answered with 202 is delivered, in its order, and nothing twice'(relay, chat) {
      relay.simulator.fault({ fault: { kind: 'lost-answer' }, target: chat })
      for (let i = 0; i < 5; i++) await accept(relay, chat, { msg: String(i) })
      await until('the first has arrived, unanswered', () => relay.texts(chat).length === 1)
      return async () => {
        assert.equal((await relay.api.post({ group_id: chat, msg: 'after' })).status, 200)
        assert.deepEqual(relay.texts(chat), ['0', '1', '2', '3', '4', 'after'])
        assert.deepEqual(await relay.states(chat), Array(6).fill('sent'))
      }
    },

    async 'the history lacks no more than the last of it, and no message is lost or doubled'(relay, chat) {
      const ids: string[] = []
      const send = async (msg: string): Promise<void> => {
        const response = await relay.api.post({ group_id: chat, msg })
        assert.equal(response.status, 200)
        ids.push(response.headers.get('x-request-id') ?? '')
      }
      for (let index = 0; index < 40; index++) await send(`early ${index}`)
      // What is written behind is written within a second.
      const end = Date.now() + 1_000
      for (let index = 0; Date.now() < end; index++) await send(`late ${index}`)
      await accept(relay, chat, { msg: 'later' })
      const sent = (): string[] => relay.texts(chat).filter(text => text !== 'later')
      const before = sent()
      return async () => {
        await until('the last one is delivered', () => relay.texts(chat).includes('later'), 20_000)
        assert.deepEqual(sent(), before)
        assert.equal(relay.texts(chat).length, before.length + 1)
        const known = (await relay.api.list(`?limit=1000&state=sent&target=group:${chat}`)).map(({ id }) => id)
        assert.equal(new Set(known).size, known.length)
        for (const id of ids.slice(0, 40)) assert(known.includes(id), 'what was sent a second before is in the history')
      }
    },

    async 'a batch goes on where it was, with its files'(relay, chat) {
      const url = await upload(relay, 'report.txt', 'report')
      relay.simulator.fault({ fault: { kind: 'lost-answer' }, action: 'upload_group_file', target: chat })
      const files = [{ type: 'file', url }, { type: 'file', url: 'base64://YWI=' }]
      await accept(relay, chat, { messages: [{ msg: 'text' }, ...files, { type: 'nonsense' }] })
      await until('two have arrived', () => relay.texts(chat).length === 2)
      return async () => {
        await reaches(relay, chat, 'failed')
        assert.deepEqual(relay.texts(chat), ['text', '[file 6]', '[file 2]'])
      }
    },

    async 'a request with a key that only waited in its queue is sent when it comes again'(relay, chat) {
      const ask = (): Promise<Reply> => relay.api.post({ group_id: chat, msg: 'second' }, { 'idempotency-key': chat })
      relay.simulator.fault({ fault: { kind: 'silent' }, target: chat })
      const interrupted = [assert.rejects(relay.api.post({ group_id: chat, msg: 'first' }))]
      await until('the first has left', () => calls(relay, chat) === 1)
      interrupted.push(assert.rejects(ask()))
      await until('the second waits', async () => (await relay.states(chat)).includes('queued'))
      return async () => {
        await Promise.all(interrupted)
        const again = await ask()
        assert.equal(again.status, 200)
        assert.equal(again.headers.get('idempotent-replayed'), null)
        assert.deepEqual(relay.texts(chat), ['second'])
      }
    },
  })

  overKill('while its account is offline:', { config: { recordContent: 'none' }, isOffline: true }, {
    async 'a picture of 1 MB that came with its request is delivered, and its file goes'(relay, chat) {
      const url = `base64://${Buffer.alloc(1_000_000, 'GIF89a').toString('base64')}`
      await accept(relay, chat, { messages: [{ msg: 'x'.repeat(100_000) }, { type: 'image', url }] })
      const files = async (): Promise<string[]> => readdir(join(relay.folder, 'uploads'))
      assert.equal((await files()).length, 1)
      return async () => {
        const { size } = await stat(join(relay.folder, 'koishi.db'))
        assert(size < 500_000, `the database has ${size} bytes`)
        await reaches(relay, chat, 'sent')
        const [entry] = relay.simulator.ledger.filter(({ target }) => target.id === chat)
        assert.deepEqual(entry?.media.map(({ size }) => size), [1_000_000])
        await until('its file is removed', async () => (await files()).length === 0)
      }
    },
  })
})
