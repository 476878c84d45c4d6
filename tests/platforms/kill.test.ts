import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { RelayProcess } from '../faults/process'
import { temporaryFolder } from '../support/folder'
import { apiKey } from '../support/relay'
import { until } from '../support/until'
import { callerOf } from './caller'
import { channel, Discord, messages, thread, user } from './discord'
import { Lark } from './lark'
import type { Platform } from './platform'
import { Satori } from './satori'
import { Telegram } from './telegram'

interface Killed {
  name: string
  /** Starts the platform, which stays while the relay is killed. */
  start: () => Promise<Platform>
  /** Chats: for a call with others behind it, for one that is not carried out, and for one with a key. */
  chats: readonly [open: string, lost: string, keyed: string]
  /** The path of the calls that send. */
  sending: RegExp
  /** Whether it can tell what became of a call that was open. */
  canTell: boolean
}

const platforms: Killed[] = [
  {
    name: 'Telegram', start: () => Telegram.start(), sending: /\/sendMessage$/, canTell: false,
    chats: ['telegram:group:-1', 'telegram:group:-2', 'telegram:group:-3'],
  },
  {
    name: 'Discord', start: () => Discord.start(), sending: messages, canTell: true,
    chats: [`discord:group:${channel}`, `discord:group:${thread}`, `discord:private:${user}`],
  },
  {
    name: 'Feishu', start: () => Lark.start(), sending: /\/im\/v1\/messages$/, canTell: true,
    chats: ['feishu:group:oc_1', 'feishu:group:oc_2', 'feishu:group:oc_3'],
  },
  {
    name: 'Satori', start: startSatori, sending: /\/message\.create$/, canTell: true,
    chats: ['llonebot:10000:group:c1', 'llonebot:10000:group:c2', 'llonebot:10000:group:c3'],
  },
]

/** A history that does not reach back to before the call proves nothing. */
async function startSatori(): Promise<Platform> {
  const satori = await Satori.start()
  for (const channelId of ['c1', 'c2', 'c3']) {
    satori.ledger.push({ id: channelId, channelId, content: 'before', parts: [], at: Date.now() - 3_600_000 })
  }
  return satori
}

describe('after kill -9', { concurrency: 2 }, () => {
  for (const { name, start, chats, sending, canTell } of platforms) {
    const outcome = canTell ? 'sent' : 'unanswered'
    const [open, lost, keyed] = chats

    test(`${name} has what was open once, or says that it is unknown, sends the rest in its order, and knows keys`, async t => {
      const platform = await start()
      const { server, adapter } = platform
      const folder = temporaryFolder()
      const launch = async (): Promise<RelayProcess> => {
        const config = { chatApiTimeout: 4, chatSettleTime: 1 }
        const launched = await RelayProcess.start({ apiKey, platform: { adapter }, folder, config })
        await until('the bot is online', async () => (await launched.request('/readyz')).status === 200, 20_000)
        return launched
      }
      let process = await launch()
      t.after(async () => {
        await process.end('SIGKILL')
        await server.stop()
      })
      const { send, queue, reaches } = callerOf(() => process, open)
      const texts = (chat: string): string[] => platform.arrived.flatMap(({ to, text }) => to === chat && text !== 'before' ? [text] : [])
      const silence = (isCarriedOut: boolean) => server.fault({ path: sending, answer: 'none', isCarriedOut })

      const sent = await send({ to: keyed, msg: 'a' }, { 'idempotency-key': 'first' })
      assert.equal(sent.status, 200, sent.msg)
      silence(true)
      const delivered = await queue({ msg: 'open' })
      await until('it has arrived', () => texts(open).length === 1)
      const behind: string[] = []
      for (const msg of ['a', 'b', 'c', 'd']) behind.push(await queue({ msg }))
      silence(true)
      const caller = send({ to: keyed, msg: 'b' }, { 'idempotency-key': 'second' }).catch((error: unknown) => error)
      await until('it has arrived', () => texts(keyed).length === 2)
      silence(false)
      const undelivered = await queue({ to: lost, msg: 'lost' })
      const calls = (): number => server.callsTo(sending).filter(({ method }) => method === 'POST').length
      await until('each was called, and nothing behind one', () => calls() === 4)

      await process.end('SIGKILL')
      assert(await caller instanceof Error)
      process = await launch()
      for (const id of [delivered, undelivered]) await reaches(id, outcome)
      for (const id of behind) await reaches(id, 'sent')
      const again = await send({ to: keyed, msg: 'a' }, { 'idempotency-key': 'first' })
      assert.deepEqual([again.status, again.data.message_ids], [200, sent.data.message_ids])
      const { status, headers, msg } = await send({ to: keyed, msg: 'b' }, { 'idempotency-key': 'second' })
      assert.deepEqual([status, headers.get('relay-outcome')], [canTell ? 200 : 504, outcome], msg)
      assert.deepEqual(chats.map(texts), [['open', 'a', 'b', 'c', 'd'], canTell ? ['lost'] : [], ['a', 'b']])
    })
  }
})
