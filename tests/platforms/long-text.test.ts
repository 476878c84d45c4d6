import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestRelay } from '../support/relay'
import { channel, DiscordServer } from './discord'
import { group, Telegram } from './telegram'

const log = Array.from({ length: 1000 }, (_, index) => `line ${String(index).padStart(4, '0')} xxxxxxxxx\n`).join('')
const config = { longText: 'divide' } as const

/** A platform with a relay, where a message goes, and the texts that members see. */
interface Stage {
  relay: TestRelay
  to: string
  texts: () => string[]
  stop: () => Promise<void>
}

for (const [name, most, start] of [
  ['Telegram', 4096, async () => {
    const telegram = await Telegram.start()
    const texts = (): string[] => telegram.messages.map(({ text }) => text)
    return { relay: await telegram.relay(config), to: `telegram:group:${group}`, texts, stop: () => telegram.server.stop() }
  }],
  ['Discord', 2000, async () => {
    const discord = await DiscordServer.start()
    const texts = (): string[] => discord.shown.map(({ content }) => content)
    return { relay: await discord.relay(config), to: `discord:group:${channel}`, texts, stop: () => discord.api.stop() }
  }],
] satisfies [string, number, () => Promise<Stage>][]) {
  test(`a log of 20,000 characters is divided at its lines on ${name}`, async () => {
    const { relay, to, texts, stop } = await start()
    const { status, body } = await relay.send({ to, msg: log })
    await relay.stop()
    await stop()
    assert.equal(status, 200, body.msg)
    assert.equal(texts().length, Math.ceil(1000 / Math.floor((most - 8) / 20)))
    const lines = texts().flatMap((text, index, { length }) => {
      assert(text.length <= most && text.startsWith(`(${index + 1}/${length})\n`), text.slice(0, 20))
      return text.split('\n').slice(1)
    })
    assert.deepEqual(lines, log.trimEnd().split('\n'))
  })
}
