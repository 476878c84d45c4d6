import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { callerOf } from './caller'
import { channel, Discord } from './discord'
import { group as larkGroup, Lark } from './lark'
import type { PlatformServer } from './server'
import { group as telegramGroup, Telegram } from './telegram'

interface Stage {
  server: PlatformServer
  /** Sends to the thread, and gives what became of it. */
  send: (msg: string, mode?: string) => Promise<unknown>
  /** The texts that are there; one that answers another behind an arrow. */
  texts: () => string[]
  /** Loses the messages that are there. */
  forget: () => void
}

/** The platforms, with the path of the call that changes a message. */
for (const [name, start, to, edits] of [
  ['Telegram', () => Telegram.start(), `telegram:group:${telegramGroup}`, /editMessageText/],
  ['Discord', () => Discord.start(), `discord:group:${channel}`, /messages\/\d+$/],
  ['Feishu', () => Lark.start(), `lark:group:${larkGroup}`, /messages\/om_\d+$/],
] as const) {
  describe(`a thread on ${name}`, () => {
    const on = async (run: (stage: Stage) => Promise<void>): Promise<void> => {
      const platform = await start()
      const relay = await platform.relay({ chatApiTimeout: 1 })
      const caller = callerOf(() => relay, to)
      try {
        await run({
          server: platform.server,
          async send(msg, mode = 'update') {
            const { status, data, msg: why } = await caller.send({ msg, thread: 'deploy', thread_mode: mode })
            assert.equal(status, 200, why)
            return data.thread
          },
          texts: () => platform.arrived.map(({ text, isAnswer }) => isAnswer ? `→ ${text}` : text),
          forget: () => platform.clear(),
        })
      } finally {
        await relay.stop()
        await platform.server.stop()
      }
    }

    test('has its first message changed, answered and replaced', () => on(async ({ send, texts }) => {
      assert.deepEqual([await send('queued'), await send('running'), await send('running'), await send('done')], ['new', 'updated', 'updated', 'updated'])
      assert.deepEqual(texts(), ['done'])
      assert.equal(await send('again', 'reply'), 'replied')
      assert.deepEqual(texts(), ['done', '→ again'])
      assert.equal(await send('last', 'replace'), 'replaced')
    }))

    test('is changed again where the first call got no answer', () => on(async ({ send, texts, server }) => {
      await send('queued')
      server.fault({ path: edits, isCarriedOut: true, answer: 'cut' })
      assert.equal(await send('done'), 'updated')
      assert.equal(server.callsTo(edits).filter(({ method }) => method !== 'GET').length, 2)
      assert.deepEqual(texts(), ['done'])
    }))

    test('goes on as an answer, or anew, where the platform changes nothing', () => on(async ({ send, texts, forget, server }) => {
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
