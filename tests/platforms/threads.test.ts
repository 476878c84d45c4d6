import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TestRelay } from '../support/relay'
import { callerOf } from './caller'
import { channel, DiscordServer } from './discord'
import { group as larkGroup, Lark } from './lark'
import type { PlatformServer } from './server'
import { group as telegramGroup, Telegram } from './telegram'

/** A platform with a relay. */
interface Stage {
  relay: TestRelay
  server: PlatformServer
  to: string
  /** The texts that are there; one that answers another behind an arrow. */
  texts: () => string[]
  /** Loses the messages that are there. */
  forget: () => void
  /** The path of the call that changes a message. */
  edits: RegExp
}

const stages: [name: string, () => Promise<Stage>][] = [
  ['Telegram', async () => {
    const telegram = await Telegram.start()
    const { server, messages } = telegram
    const texts = (): string[] => messages.map(({ text, replyTo }) => replyTo === undefined ? text : `→ ${text}`)
    const relay = await telegram.relay({ chatApiTimeout: 1 })
    return { relay, server, to: `telegram:group:${telegramGroup}`, texts, forget: () => messages.splice(0), edits: /editMessageText/ }
  }],
  ['Discord', async () => {
    const discord = await DiscordServer.start()
    const { api: server, shown } = discord
    const relay = await discord.relay({ chatApiTimeout: 1 })
    const texts = (): string[] => shown.map(({ content, replyTo }) => replyTo === undefined ? content : `→ ${content}`)
    return { relay, server, to: `discord:group:${channel}`, texts, forget: () => shown.splice(0), edits: /messages\/\d+$/ }
  }],
  ['Feishu', async () => {
    const lark = await Lark.start()
    const { server, messages } = lark
    const texts = (): string[] => messages.map(({ text, to }) => to.startsWith('om_') ? `→ ${text}` : text)
    return { relay: await lark.relay(), server, to: `lark:group:${larkGroup}`, texts, forget: () => messages.splice(0), edits: /messages\/om_\d+$/ }
  }],
]

for (const [name, start] of stages) {
  describe(`a thread on ${name}`, () => {
    /** Runs a test with a relay, and sends to a thread. */
    const on = async (run: (stage: Stage, send: (msg: string, mode?: string) => Promise<unknown>) => Promise<void>): Promise<void> => {
      const stage = await start()
      const caller = callerOf(() => stage.relay, stage.to)
      const send = async (msg: string, mode = 'update'): Promise<unknown> => {
        const { status, data, msg: why } = await caller.send({ msg, thread: 'deploy', thread_mode: mode })
        assert.equal(status, 200, why)
        return data.thread
      }
      try {
        await run(stage, send)
      } finally {
        await stage.relay.stop()
        await stage.server.stop()
      }
    }

    test('has its first message changed, answered and replaced', () => on(async ({ texts }, send) => {
      assert.deepEqual([await send('queued'), await send('running'), await send('running'), await send('done')], ['new', 'updated', 'updated', 'updated'])
      assert.deepEqual(texts(), ['done'])
      assert.equal(await send('again', 'reply'), 'replied')
      assert.deepEqual(texts(), ['done', '→ again'])
      assert.equal(await send('last', 'replace'), 'replaced')
    }))

    test('is changed again where the first call got no answer', () => on(async ({ texts, server, edits }, send) => {
      await send('queued')
      server.fault({ path: edits, isCarriedOut: true, answer: 'cut' })
      assert.equal(await send('done'), 'updated')
      assert.equal(server.callsTo(edits).filter(({ method }) => method !== 'GET').length, 2)
      assert.deepEqual(texts(), ['done'])
    }))

    test('goes on as an answer, or anew, where the platform changes nothing', () => on(async ({ texts, forget, server, edits }, send) => {
      await send('queued')
      server.fault({ path: edits, answer: { status: 400, body: { ok: false, error_code: 400, code: 230075, msg: 'too old', description: 'Bad Request: message can\'t be edited' } } })
      assert.equal(await send('running'), 'replied')
      assert.deepEqual(texts(), ['queued', '→ running'])
      forget()
      await send('lost')
      assert.equal(texts().at(-1)?.replace('→ ', ''), 'lost')
    }))
  })
}
