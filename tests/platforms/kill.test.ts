import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { RelayProcess } from '../faults/process'
import type { AdapterEntry } from '../support/adapter'
import { apiKey } from '../support/relay'
import { until } from '../support/until'
import { callerOf, type Caller } from './caller'
import { channel, DiscordServer, messages } from './discord'
import { group as larkGroup, Lark } from './lark'
import { SatoriServer } from './satori'
import type { PlatformServer } from './server'
import { group, Telegram } from './telegram'

/** A platform that stays while the relay is killed. */
interface Platform {
  server: PlatformServer
  adapter: AdapterEntry
  /** A chat, and the path of the calls that send to it. */
  to: string
  sending: RegExp
  /** What has arrived, in its order. */
  texts: () => string[]
}

/** Each, and whether it can tell what became of a call that was open. */
const platforms: Readonly<Record<string, { start: () => Promise<Platform>, canTell: boolean }>> = {
  Telegram: {
    canTell: false,
    async start() {
      const telegram = await Telegram.start()
      const { server, adapter } = telegram
      return { server, adapter, to: `telegram:group:${group}`, sending: /\/sendMessage$/, texts: () => telegram.messages.map(({ text }) => text) }
    },
  },
  Discord: {
    canTell: true,
    async start() {
      const discord = await DiscordServer.start()
      const { api: server, adapter } = discord
      return { server, adapter, to: `discord:group:${channel}`, sending: messages, texts: () => discord.shown.map(({ content }) => content) }
    },
  },
  Feishu: {
    canTell: true,
    async start() {
      const lark = await Lark.start()
      const { server, adapter } = lark
      return { server, adapter, to: `feishu:group:${larkGroup}`, sending: /\/im\/v1\/messages$/, texts: () => lark.messages.map(({ text }) => text) }
    },
  },
  Satori: {
    canTell: true,
    async start() {
      const satori = await SatoriServer.start()
      const { api: server, adapter, sid, ledger } = satori
      // A history that does not reach back to before the call proves nothing.
      ledger.push({ id: 'old', channelId: 'c1', content: 'old', parts: [], at: Date.now() - 3_600_000 })
      return { server, adapter, to: `${sid}:group:c1`, sending: /\/message\.create$/, texts: () => ledger.slice(1).map(({ content }) => content) }
    },
  },
}

interface Stage extends Platform {
  caller: Caller
  /** The calls that would send something. */
  calls: () => number
  /** The next call gets no answer, and its message arrives or not. */
  silence: (arrives: boolean) => void
  /** SIGKILL, and a new process on the same data. */
  restart: () => Promise<void>
}

async function stage(t: TestContext, platform: Platform): Promise<Stage> {
  const { server, adapter, to, sending } = platform
  const folder = await mkdtemp(join(tmpdir(), 'relay-kill-'))
  const launch = (): Promise<RelayProcess> => {
    return RelayProcess.start({ apiKey, platform: { adapter }, folder, config: { chatApiTimeout: 2, chatSettleTime: 1 } })
  }
  let process = await launch()
  t.after(async () => {
    await process.end('SIGKILL')
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  })
  const caller = callerOf(() => process, to)
  const online = (): Promise<void> => until('the bot is online', async () => (await process.request('/readyz')).status === 200, 20_000)
  await online()
  return {
    ...platform,
    caller,
    calls: () => server.callsTo(sending).filter(({ method }) => method === 'POST').length,
    silence: isCarriedOut => server.fault({ path: sending, answer: 'none', isCarriedOut }),
    async restart() {
      await process.end('SIGKILL')
      process = await launch()
      await online()
    },
  }
}

for (const [name, { start, canTell }] of Object.entries(platforms)) {
  describe(`after kill -9, on ${name}`, { concurrency: 2 }, () => {
    test('what a call had delivered is not sent again, and what waited behind it is, in its order', async t => {
      const { caller: { queue, reaches }, silence, texts, calls, restart } = await stage(t, await start())
      silence(true)
      const open = await queue({ msg: 'open' })
      await until('it has arrived', () => texts().length === 1)
      const waiting = ['a', 'b', 'c', 'd']
      const ids: string[] = []
      for (const msg of waiting) ids.push(await queue({ msg }))
      assert.equal(calls(), 1)
      await restart()
      await reaches(open, canTell ? 'sent' : 'unanswered')
      for (const id of ids) await reaches(id, 'sent')
      assert.deepEqual(texts(), ['open', ...waiting])
    })

    test(`what a call had not delivered ${canTell ? 'is sent' : 'is told to be unknown, and not sent'}`, async t => {
      const { caller: { queue, reaches }, silence, texts, calls, restart } = await stage(t, await start())
      silence(false)
      const id = await queue({ msg: 'open' })
      await until('it was called', () => calls() === 1)
      await restart()
      await reaches(id, canTell ? 'sent' : 'unanswered')
      assert.deepEqual(texts(), canTell ? ['open'] : [])
    })

    test('a key is known, whether its message was answered for or not', async t => {
      const { caller: { send }, silence, texts, restart } = await stage(t, await start())
      const [first, second] = [{ 'idempotency-key': 'first' }, { 'idempotency-key': 'second' }]
      const sent = await send({ msg: 'a' }, first)
      assert.equal(sent.status, 200, sent.msg)
      silence(true)
      const lost = send({ msg: 'b' }, second).catch((error: unknown) => error)
      await until('it has arrived', () => texts().length === 2)
      await restart()
      assert(await lost instanceof Error)
      const again = await send({ msg: 'a' }, first)
      assert.deepEqual([again.status, again.data.message_ids], [200, sent.data.message_ids])
      const { status, headers, msg } = await send({ msg: 'b' }, second)
      assert.deepEqual([status, headers.get('relay-outcome')], canTell ? [200, 'sent'] : [504, 'unanswered'], msg)
      assert.deepEqual(texts(), ['a', 'b'])
    })
  })
}
