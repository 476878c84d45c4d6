import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { LongText } from '../../src/message/model'
import type { TestRelay } from '../support/relay'
import { channel, DiscordServer } from './discord'
import { group, Telegram } from './telegram'

const log = Array.from({ length: 1000 }, (_, index) => `line ${String(index).padStart(4, '0')} xxxxxxxxx\n`).join('')

/** What members see of a long text, and the names of its files. */
type See = (longText: LongText, send: (relay: TestRelay, to: string) => Promise<void>) => Promise<{ texts: string[], files: string[] }>

const platforms: Record<string, { most: number, see: See }> = {
  Telegram: {
    most: 4096,
    see: async (longText, send) => {
      const telegram = await Telegram.start()
      const relay = await telegram.relay({ longText })
      await send(relay, `telegram:group:${group}`)
      await relay.stop()
      await telegram.server.stop()
      return {
        texts: telegram.messages.map(({ text }) => text).filter(Boolean),
        files: telegram.messages.flatMap(({ files = [] }) => files.map(({ name }) => name)),
      }
    },
  },
  Discord: {
    most: 2000,
    see: async (longText, send) => {
      const discord = await DiscordServer.start()
      const relay = await discord.relay({ longText })
      await send(relay, `discord:group:${channel}`)
      await relay.stop()
      await discord.api.stop()
      return {
        texts: discord.shown.map(({ content }) => content).filter(Boolean),
        files: discord.shown.flatMap(({ files }) => files.map(({ name }) => name)),
      }
    },
  },
}

for (const [name, { most, see }] of Object.entries(platforms)) {
  describe(`a log of 20,000 characters on ${name}`, () => {
    const send = async (relay: TestRelay, to: string): Promise<void> => {
      const { status, body } = await relay.send({ to, msg: log })
      assert.equal(status, 200, body.msg)
    }

    test('is divided at its lines', async () => {
      const { texts, files } = await see('divide', send)
      assert.deepEqual(files, [])
      assert.equal(texts.length, Math.ceil(1000 / Math.floor((most - 8) / 20)))
      const lines = texts.flatMap((text, index) => {
        assert(text.length <= most && text.startsWith(`(${index + 1}/${texts.length})\n`), text.slice(0, 20))
        return text.split('\n').slice(1)
      })
      assert.deepEqual(lines, log.trimEnd().split('\n'))
    })

    test('is its beginning and a file', async () => {
      assert.deepEqual(await see('file', send), { texts: [log.slice(0, 999)], files: ['message.txt'] })
    })
  })
}
